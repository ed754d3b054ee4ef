"""Plays the operators, the sensor and the trigger on Airflow's connection `shop`; run by the Python that has Airflow.

Writes a line of JSON for each step.
"""

import asyncio
import json
import sys
from datetime import timedelta
from typing import Any


def main(document: str) -> None:
    """Read the document's example; play a load, a wait that is over at once, one that is deferred, and a watcher."""
    from airflow.sdk import DAG, Asset
    from airflow.sdk.exceptions import TaskDeferred
    from airflow.sdk.execution_time.context import OutletEventAccessors

    from pytrickle.integrations.airflow import CompletenessSensor, CompletenessTrigger, LoadOperator

    names: dict[str, Any] = {}
    exec(compile(sys.stdin.read(), document, "exec"), names)
    say(sorted(task.task_id for task in names["dag"].tasks))
    asset = Asset("shop/orders")
    with DAG("shop"):
        at = {"conn_id": "shop", "source": "orders"}
        load = LoadOperator(task_id="load", sql="INSERT INTO orders VALUES (2)", through="2026-03-01T00:00Z", **at)
        broken = LoadOperator(task_id="broken", sql="INSERT INTO orders VALUES (3)", through="2026-02-01T00:00Z", **at)
        waits = {"conn_id": "shop", "poll_interval": timedelta(seconds=0.1), "outlets": [asset]}
        past = CompletenessSensor(task_id="past", name="orders", through="2026-03-01T00:00Z", **waits)
        future = CompletenessSensor(task_id="future", name="per_day", through="2026-04-01T00:00Z", **waits)

    context: dict[str, Any] = {"outlet_events": OutletEventAccessors()}
    say(load.execute(context))
    try:
        broken.execute(context)
    except Exception as error:
        say(type(error).__name__)
    say(past.execute(context))
    say(sorted(context["outlet_events"][asset].partition_keys))
    try:
        future.execute(context)
    except TaskDeferred as deferred:
        path, told = deferred.trigger.serialize()
        say([path, told])
        trigger = CompletenessTrigger(**told)
        say(deferred.method_name)
    event = asyncio.run(first(trigger))
    context = {"outlet_events": OutletEventAccessors()}
    say(future.complete(context, event))
    say(sorted(context["outlet_events"][asset].partition_keys))
    say(asyncio.run(first(CompletenessTrigger("per_day", conn_id="shop"))))


async def first(trigger: Any) -> Any:
    """Return what the trigger fires first with; the test advances the watermark meanwhile."""
    return (await anext(trigger.run())).payload


def say(what: object) -> None:
    """Write a line."""
    sys.stdout.write(f"said: {json.dumps(what)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])

"""Observes the stream table of a page and checks it; run by the Python that has Dagster. Writes what came as JSON."""

import json
import sys
from pathlib import Path
from typing import Any


def main(example: str) -> None:
    """Run the page's example; observe its stream table and check it, as often as a line comes."""
    import dagster as dg

    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(Path(example).read_text(), example, "exec"), names)
    sales, check = names["sales"], names["sales_complete"]
    observing = dg.define_asset_job("observe", dg.AssetSelection.assets(sales.key))
    checks = dg.define_asset_job("check", dg.AssetSelection.checks(check))
    defs = dg.Definitions(assets=[sales, names["report"]], asset_checks=[check], jobs=[observing, checks])
    with dg.DagsterInstance.ephemeral() as instance:
        for _ in sys.stdin:
            defs.resolve_job_def("observe").execute_in_process(instance=instance)
            (seen,) = instance.fetch_observations(sales.key, limit=1).records
            observation = seen.asset_observation
            (checked,) = (
                defs.resolve_job_def("check").execute_in_process(instance=instance).get_asset_check_evaluations()
            )
            time = observation.metadata.get("dagster/data_time")
            told = {
                "data_time": time.value if time else None,
                "version": observation.data_version,
                "passed": checked.passed,
                "told": checked.description,
            }
            sys.stdout.write(f"said: {json.dumps(told)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])

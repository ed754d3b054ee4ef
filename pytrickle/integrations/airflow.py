"""Airflow 3: wait until a stream table or a source is complete, and load a source together with its watermark.

Needs nothing of pytrickle's but this module and psycopg, so that a worker of Airflow stays small.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import psycopg
from airflow.sdk import BaseHook, BaseOperator
from airflow.triggers.base import BaseEventTrigger, TriggerEvent

# How far a stream table is complete, or else a source, and whether that is far enough.
COMPLETE = """
SELECT to_json(reached AT TIME ZONE 'UTC') #>> '{}' || CASE WHEN isfinite(reached) THEN 'Z' ELSE '' END
FROM (
    SELECT CASE WHEN t.pgt_id IS NULL THEN pgtrickle.watermark_of(%(name)s::text) ELSE t.effective_watermark END
    FROM (SELECT to_regclass(%(name)s) AS relid) AS named
    LEFT JOIN pgtrickle.stream_tables_info AS t ON t.pgt_relid = relid
) AS found (reached)
WHERE reached >= COALESCE(%(through)s::timestamptz, '-infinity')
"""


class CompletenessTrigger(BaseEventTrigger):
    """Fires when a stream table or source is complete through an event time.

    Without an event time it fires whenever the watermark is found to have moved, for an `AssetWatcher`.
    """

    def __init__(
        self,
        name: str,
        through: str | None = None,
        conn_id: str = "postgres_default",
        poll_interval: float = 10,
    ) -> None:
        super().__init__()
        self.name = name
        self.through = through
        self.conn_id = conn_id
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return what makes this trigger anew in the triggerer: no password is among it."""
        told = {name: getattr(self, name) for name in ("name", "through", "conn_id", "poll_interval")}
        return f"{type(self).__module__}.{type(self).__qualname__}", told

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look every `poll_interval` seconds."""
        address = (await BaseHook.aget_connection(self.conn_id)).get_uri()
        asked, shown = {"name": self.name, "through": self.through}, None
        while True:
            async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
                row = await (await connection.execute(COMPLETE, asked)).fetchone()
            if row and row[0] != shown:
                shown = row[0]
                yield TriggerEvent({"name": self.name, "watermark": shown})
                if self.through is not None:
                    return
            await asyncio.sleep(self.poll_interval)


class CompletenessSensor(BaseOperator):
    """Waits, without a worker, until a stream table or source is complete through an event time.

    Its result is the watermark it found, and each asset among its outlets gets an event with that as partition key.
    """

    template_fields: Sequence[str] = ("name", "through")

    def __init__(
        self,
        *,
        name: str,
        through: str = "{{ data_interval_end }}",
        conn_id: str = "postgres_default",
        poll_interval: timedelta = timedelta(seconds=10),
        timeout: timedelta | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.name = name
        self.through = through
        self.conn_id = conn_id
        self.poll_interval = poll_interval
        self.timeout = timeout

    def execute(self, context: Any) -> str:
        """Return at once what is complete; else hand on to the triggerer."""
        with psycopg.connect(BaseHook.get_connection(self.conn_id).get_uri(), autocommit=True) as connection:
            row = connection.execute(COMPLETE, {"name": self.name, "through": self.through}).fetchone()
        if row:
            return self.complete(context, {"name": self.name, "watermark": row[0]})
        trigger = CompletenessTrigger(self.name, self.through, self.conn_id, self.poll_interval.total_seconds())
        self.defer(trigger=trigger, method_name="complete", timeout=self.timeout)
        raise AssertionError("a deferred task goes on elsewhere")

    def complete(self, context: Any, event: dict[str, str]) -> str:
        """Say for each outlet through which event time it is complete."""
        for outlet in self.outlets:
            told = context["outlet_events"][outlet]
            told.extra = {**told.extra, **event}
            told.add_partitions(event["watermark"])
        return event["watermark"]


class LoadOperator(BaseOperator):
    """Runs SQL that loads a source, and says in the same transaction that it is complete through an event time."""

    template_fields: Sequence[str] = ("sql", "through")
    template_ext: Sequence[str] = (".sql",)

    def __init__(
        self,
        *,
        sql: str,
        source: str,
        through: str = "{{ data_interval_end }}",
        conn_id: str = "postgres_default",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.sql = sql
        self.source = source
        self.through = through
        self.conn_id = conn_id

    def execute(self, context: Any) -> str:
        """Load and advance, or neither; return the watermark."""
        with psycopg.connect(BaseHook.get_connection(self.conn_id).get_uri()) as connection:
            connection.execute(self.sql.encode())
            advance = "SELECT pgtrickle.advance_watermark(%s::text, %s::timestamptz)"
            connection.execute(advance, (self.source, self.through))
        return self.through

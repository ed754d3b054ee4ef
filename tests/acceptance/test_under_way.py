"""A refresh that begins is told to `logging`, so that a terminal can show it."""

from __future__ import annotations

import logging

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client


def test_a_refresh_is_told_when_it_begins_and_one_without_changes_is_not(
    db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "pytrickle.refresh")
    db.execute("CREATE TABLE orders (id int)")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("counts", "SELECT count(*) FROM orders")
        for actions in (["FULL"], ["NO_DATA"]):
            caplog.clear()
            assert [result.action for result in client.tick()] == actions
            begun = [record.event for record in caplog.records]  # type: ignore[attr-defined]
            assert begun == [{"begins": "public.counts"}][: actions == ["FULL"]]

"""A small installation, without PySpark: PostgreSQL computes everything, and whoever asks for Spark learns why not."""

from __future__ import annotations

import pytest

from pytrickle.compute.spark import java
from pytrickle.config import EngineName
from pytrickle.errors import PackageMissing
from pytrickle.plan.limits import Limits, Means, limits_of
from tests.commands import commands
from tests.conftest import Database


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody finds PySpark."""
    monkeypatch.setattr(java, "find_spec", lambda name: None)


def test_auto_is_left_to_postgresql_and_says_why(small: None) -> None:
    given = Limits(0, 0)
    limits = limits_of(EngineName.AUTO, EngineName.SPARK, given, java.has_spark())
    assert limits.means is Means.POSTGRES
    assert limits.chosen == "PySpark is not installed, although the stream table asks for spark"
    limits = limits_of(EngineName.POSTGRES, EngineName.AUTO, given, java.has_spark())
    assert limits.chosen == "the refresher's engine is postgres"
    with pytest.raises(PackageMissing, match="PySpark is not installed"):
        java.require_spark()


def test_commands_work_without_pyspark(small: None, db: Database) -> None:
    run = commands(db.dsn)
    db.execute("CREATE TABLE orders (id int)")
    db.execute("INSERT INTO orders VALUES (1)")
    run("create", "counts", "SELECT count(*) FROM orders", "--engine", "spark")
    assert "public.counts  FULL" in run("tick").stdout
    assert "PySpark is not installed" in run("explain", "counts").stdout
    assert "Java: not needed" in run("doctor").stdout
    asked = run("doctor", "--spark")
    assert asked.exit_code == 3 and "problem  Spark: " in asked.stdout and "pytrickle-postgres[spark]" in asked.stdout
    refused = run("tick", "--engine", "spark")
    assert refused.exit_code == 0, "there is nothing to compute"
    db.execute("INSERT INTO orders VALUES (2)")
    refused = run("tick", "--engine", "spark")
    assert refused.exit_code == 1 and "pip install 'pytrickle-postgres[spark]'" in refused.stderr

"""What was exported reads back as what is in the database, whatever options there are."""

from __future__ import annotations

import resource
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pytrickle
from pytrickle.definitions.values import Project, StreamTableDefinition
from pytrickle.errors import InvalidArgument
from tests.acceptance.projects import project, pt, shop
from tests.conftest import Database

__all__ = ["project", "pt", "shop"]


def test_nothing_is_to_be_done_after_an_export(shop: Database, pt: pytrickle.Client, project: Path) -> None:
    pt.apply(project)
    pt.create_stream_table("lent", "SELECT id FROM orders", statement_timeout="5 s", fuse_ceiling=7)
    pt.create_stream_table('"odd ""name"""', "SELECT id FROM orders;", watermark_tolerance="1 day")
    files = pt.export("shop", project / "written")
    assert len(files) == 5
    assert not pt.plan(project / "written")
    with pytest.raises(InvalidArgument, match="there already"):
        pt.export("shop", project / "written")
    for name in ("large", "totals", "lent", '"odd ""name"""'):
        shop.execute("SELECT pgtrickle.drop_stream_table(%s)", name)
    shop.execute("SELECT pgtrickle.drop_watermark_group('pipeline')")
    assert len(pt.apply(project / "written").changes) >= 5
    assert not pt.plan(project / "written")


def test_where_no_file_can_be_written_is_named(pt: pytrickle.Client, tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    for there in ("taken", "taken/below", "n" * 300):
        with pytest.raises(InvalidArgument, match=f"{there}.* cannot be written") as refused:
            pt.export("shop", tmp_path / there)
        assert refused.value.hint == "Name a directory in which you may create files."


def test_a_part_of_an_export_is_never_left_as_a_project(shop: Database, pt: pytrickle.Client, tmp_path: Path) -> None:
    """Whoever applied it would drop the stream tables that it lacks."""
    pt.create_stream_table("short", "SELECT id FROM orders")
    pt.create_stream_table("long", f"SELECT id, '{'x' * 10_000}' AS x FROM orders")
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, unlimited[1]))
    try:
        with pytest.raises(InvalidArgument, match="cannot be written: File too large"):
            pt.export("shop", tmp_path / "written")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert not list((tmp_path / "written").iterdir())
    files = pt.export("shop", tmp_path / "written")
    assert max(files, key=lambda path: path.stat().st_mtime_ns).name == "pytrickle.toml", "if killed, it is not there"


def test_a_name_that_is_longer_than_that_of_a_file_is_cut(shop: Database, pt: pytrickle.Client, tmp_path: Path) -> None:
    schema = "/" * 63
    shop.execute(f'CREATE SCHEMA "{schema}"')
    names = [f'"{schema}"."{"/" * 62}{end}"' for end in "ab"]
    for name in names:
        pt.create_stream_table(name, "SELECT id FROM public.orders")
    assert len(pt.export("shop", tmp_path / "written")) == 3
    assert not pt.plan(tmp_path / "written")


OPTIONS = {
    "schedule": st.sampled_from(["calculated", "5m", "2 hours", "0 6 * * mon-fri"]),
    "refresh_mode": st.sampled_from(["AUTO", "DIFFERENTIAL", "differential_strict", "FULL"]),
    "watermark_gating": st.sampled_from(["auto", "none", "gate", "Hold_Back"]),
    "require_watermark": st.booleans(),
    "tier": st.sampled_from(["hot", "warm", "cold", "frozen"]),
    "schedule_timezone": st.sampled_from(["UTC", "Europe/Berlin"]),
    "watermark_tolerance": st.sampled_from(["90 s", "1 day 02:00", "0"]),
    "gate_deadline": st.sampled_from(["90 min"]),
    "diamond_consistency": st.sampled_from(["atomic", "none"]),
    "diamond_schedule_policy": st.sampled_from(["fastest", "slowest"]),
    "fuse_ceiling": st.integers(1, 10**12),
    "allow_circular": st.booleans(),
    "max_fixpoint_iterations": st.integers(1, 1000),
    "batch_tolerance": st.integers(0, 9),
    "watermark_retention": st.sampled_from(["1 month", "36:00"]),
    "statement_timeout": st.sampled_from(["5 s", "1500 ms"]),
    "engine": st.sampled_from(["auto", "spark", "postgres"]),
    "output_mode": st.sampled_from(["update"]),
    "cdc_mode": st.sampled_from(["trigger"]),
    "partition_by": st.just("id"),
    "max_differential_joins": st.integers(1, 9),
    "append_only": st.booleans(),
}


@pytest.mark.repeats
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sets=st.lists(st.fixed_dictionaries({}, optional=OPTIONS), min_size=3, max_size=3))
def test_any_set_of_options_is_followed_exported_and_read_back(
    shop: Database, pt: pytrickle.Client, tmp_path_factory: pytest.TempPathFactory, sets: list[dict[str, object]]
) -> None:
    tables = tuple(StreamTableDefinition(f"t{i}", "SELECT id FROM orders", o, str(i)) for i, o in enumerate(sets))
    pt.apply(Project("random", tables))
    assert not pt.plan(Project("random", tables))
    tables = tuple(replace(table, options=o) for table, o in zip(tables, reversed(sets), strict=True))
    pt.apply(Project("random", tables))
    assert not pt.plan(Project("random", tables))
    directory = tmp_path_factory.mktemp("written")
    pt.export("random", directory)
    assert not pt.plan(directory)
    pt.apply(Project("random", ()))
    assert not pt.stream_tables()
    pt.apply(directory)
    assert not pt.plan(Project("random", tables))

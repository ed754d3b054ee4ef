"""The runs behind the tables in docs/: each writes its document, and tells what later runs are compared by."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks import __main__ as refreshes
from benchmarks.capture import __main__ as capture
from benchmarks.engines import __main__ as engines
from benchmarks.propagation import __main__ as propagation
from benchmarks.scale import __main__ as scale
from benchmarks.sink import __main__ as sink
from benchmarks.tpch import __main__ as tpch
from benchmarks.watermarks import __main__ as watermarks

Main = Callable[[Sequence[str]], dict[str, float]]
SF1 = ("--orders", "1500000")
RUNS: dict[str, tuple[Main, tuple[str, ...]]] = {
    "capture": (capture.main, ()),
    "refreshes": (refreshes.main, ()),
    "engines": (engines.main, ()),
    "TPC-H": (tpch.main, SF1),
    "propagation": (propagation.main, ()),
    "watermark generators": (watermarks.main, ()),
    "sink": (sink.main, ()),
    "many stream tables": (scale.main, ()),
}


@pytest.mark.large
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", RUNS)
def test_a_document_is_written(benchmark: BenchmarkFixture, name: str) -> None:
    benchmark.group = name
    main, arguments = RUNS[name]
    figures = benchmark.pedantic(main, [[*arguments, "--output", str(Path("docs"))]], rounds=1)
    assert figures
    benchmark.extra_info["figures"] = figures

"""What a run says of itself: the seeds that it played, and how a test that failed is run again."""

from __future__ import annotations

import random
import shlex
from collections import defaultdict
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import is_hypothesis_test, settings

SPECIAL_IN_DOUBLE_QUOTES = frozenset('"$`\\!')


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give Hypothesis one seed for the whole run, and all the time that a busy machine takes for an example.

    xdist hands the options of the run to its processes.
    """
    settings.register_profile("untimed", deadline=None)
    settings.load_profile("untimed")
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = random.randrange(2**32)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Note on every test the seed that it plays, for the summary."""
    for item in items:
        seed = _parameters(item).get("seed")
        if seed is not None:
            item.user_properties.append(("seed", seed))


def _parameters(item: pytest.Item) -> dict[str, Any]:
    return item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Print below a failure the command that runs this test again."""
    report = yield
    if report.failed:
        report.sections.append(("run it again", again(item)))
    return report


def again(item: pytest.Item) -> str:
    """Return the command that runs a test again, with the seed of Hypothesis where it draws examples."""
    arguments = _quoted(item.nodeid)
    if is_hypothesis_test(getattr(item, "obj", None)):
        arguments += f" --hypothesis-seed={item.config.option.hypothesis_seed}"
    return f"make {_target(item)} PYTEST_ARGS={shlex.quote(arguments.replace('$', '$$'))}"


def _target(item: pytest.Item) -> str:
    """Name the target that plays this test where nothing else is chosen."""
    if soak := item.get_closest_marker("soak"):
        return str(soak.kwargs.get("alone", "test-soak"))
    return "test-long" if item.get_closest_marker("repeats") else "test"


def _quoted(argument: str) -> str:
    """Quote for a shell, by double quotes where they do, since the command itself comes within single ones."""
    return shlex.quote(argument) if SPECIAL_IN_DOUBLE_QUOTES & set(argument) else f'"{argument}"'


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the seeds of the run."""
    played = defaultdict(set)
    for reports in terminalreporter.stats.values():
        # Tests that were left out count too, as what they are.
        for report in (report for report in reports if isinstance(report, pytest.TestReport)):
            for name, seed in report.user_properties:
                if name == "seed":
                    played[report.nodeid.partition("[")[0]].add(seed)
    terminalreporter.section("seeds")
    for test, seeds in sorted(played.items()):
        terminalreporter.line(f"{test}: {' '.join(map(str, sorted(seeds)))}")
    seed = terminalreporter.config.option.hypothesis_seed
    terminalreporter.line(f"Hypothesis: {seed}; again by --hypothesis-seed={seed}")

"""Compare a run with the published one: `python -m benchmarks.compare RUN.json [--publish]`.

Prints the ratios within the run, group by group, and names what became slower beyond noise. With `--publish` the run
becomes the published one, without its single measurements, also where something did: it still ends with 3.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

PUBLISHED = Path(__file__).with_name("published.json")
# What a figure may differ by when nothing changed: three times its spread, and never less than so much. Of what is
# told as a multiple the spread is not known.
SPREADS, LEAST, LEAST_RELATIVE = 3.0, 0.15, 0.3
MACHINE, PROCESSOR = ("machine", "system", "python_implementation", "python_version"), ("arch", "brand_raw", "count")


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure of a run: what it is about, its median in seconds or as a multiple, and the spread of its middle half.

    `relative` figures are ratios within their run, so that the speed of the machine does not matter to them.
    """

    name: str
    group: str
    median: float
    spread: float
    relative: bool = False


@dataclass(frozen=True, slots=True)
class Regression:
    """A figure that is this many times what was published, where up to `noise` times would have been noise."""

    name: str
    times: float
    noise: float


def measured(run: Mapping[str, Any]) -> tuple[Measured, ...]:
    """Return the figures of a run that pytest-benchmark saved as JSON; those in `figures` come from long runs."""
    return tuple(figure for benchmark in run["benchmarks"] for figure in _figures(benchmark))


def ratios(run: Sequence[Measured]) -> Iterator[str]:
    """Yield a line for each figure of a group of several, as a multiple of the group's first.

    >>> run = [Measured("plain", "copy", 2.0, 0.1), Measured("captured", "copy", 3.0, 0.1)]
    >>> print(*ratios(run), sep="\\n")
    copy
      plain                                                                 2.00 s
      captured                                                              3.00 s  1.50 x
    """
    for group in dict.fromkeys(figure.group for figure in run):
        members = [figure for figure in run if figure.group == group]
        yield group
        for figure in members:
            times = "" if figure.relative or figure is members[0] else f"  {figure.median / members[0].median:.2f} x"
            yield f"  {figure.name:<70}{_value(figure)}{times}"


def regressions(run: Sequence[Measured], published: Sequence[Measured]) -> tuple[Regression, ...]:
    """Return what became slower beyond noise, the worst first.

    Another machine, or a loaded one, is slower at everything: the median of all that is measured in seconds tells by
    how much, and only what became slower than that counts.

    >>> old = [Measured(name, "", 1.0, 0.02) for name in "abcde"]
    >>> new = [Measured(name, "", 2.0, 0.02) for name in "abcd"] + [Measured("e", "", 5.0, 0.02)]
    >>> regressions(new, old)
    (Regression(name='e', times=2.5, noise=1.15),)
    """
    known = {figure.name: figure for figure in published if figure.median > 0}
    pairs = [(figure, known[figure.name]) for figure in run if figure.name in known]
    absolute = [new.median / old.median for new, old in pairs if not new.relative]
    slower = median(absolute) if absolute else 1.0
    found = (_compared(new, old, 1.0 if new.relative else slower) for new, old in pairs)
    return tuple(sorted((one for one in found if one.times > one.noise), key=lambda one: -one.times))


def to_be_published(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of a run; pytest-benchmark can still compare with it.

    That leaves out single measurements, the commit, and of the machine what says nothing about its speed.
    """
    benchmarks = [{**one, "stats": {k: v for k, v in one["stats"].items() if k != "data"}} for one in run["benchmarks"]]
    machine = run.get("machine_info", {})
    kept = {name: machine[name] for name in MACHINE if name in machine}
    kept["cpu"] = {name: value for name, value in machine.get("cpu", {}).items() if name in PROCESSOR}
    return {name: run[name] for name in ("datetime", "version") if name in run} | {
        "machine_info": kept,
        "commit_info": {},
        "benchmarks": benchmarks,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what a run shows; end with 3 where something became slower beyond noise."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description="Compare runs.")
    parser.add_argument("run", type=Path, help="what pytest --benchmark-json wrote")
    parser.add_argument("--published", type=Path, default=PUBLISHED, help="the run to compare with, and to publish as")
    parser.add_argument("--publish", action="store_true", help="keep the run as the published one")
    options = parser.parse_args(arguments)
    saved = json.loads(options.run.read_text(encoding="utf-8"))
    run = measured(saved)
    print(*ratios(run), sep="\n")
    known = json.loads(options.published.read_text(encoding="utf-8")) if options.published.exists() else None
    slower = regressions(run, measured(known)) if known else ()
    for one in slower:
        print(f"Slower than published: {one.name}, {one.times:.2f} times (up to {one.noise:.2f} is noise).")
    if known and not slower:
        print(f"Nothing became slower beyond noise since {known['datetime'][:10]}.")
    if options.publish:
        kept = json.dumps(to_be_published(saved), indent=1, sort_keys=True)
        options.published.write_text(kept + "\n", encoding="utf-8")
    if slower:
        raise SystemExit(3)


def _figures(benchmark: Mapping[str, Any]) -> Iterator[Measured]:
    group = benchmark["group"] or benchmark["name"]
    told = benchmark.get("extra_info", {}).get("figures")
    if told is None:
        stats = benchmark["stats"]
        name = benchmark["fullname"].rpartition("/")[2]
        yield Measured(name, group, stats["median"], stats["iqr"] / stats["median"])
        return
    for name, value in told.items():
        yield Measured(f"{group}: {name}", group, value, 0.0, relative=True)


def _compared(new: Measured, old: Measured, slower: float) -> Regression:
    noise = 1 + max(SPREADS * max(new.spread, old.spread), LEAST_RELATIVE if new.relative else LEAST)
    return Regression(new.name, round(new.median / old.median / slower, 3), round(noise, 3))


def _value(figure: Measured) -> str:
    if figure.relative:
        return f"{figure.median:.3g}"
    seconds = figure.median
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"


if __name__ == "__main__":
    main()

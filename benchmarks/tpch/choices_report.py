"""Writes down how well AUTO chose: a section for each number of orders, of which a run replaces its own."""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from pathlib import Path
from statistics import median

from benchmarks.tpch.choices import Round

HEAD = """# What AUTO chooses

<!-- Written by `python -m benchmarks.tpch --choices`; do not edit. -->

For whoever wonders whether `AUTO` can be trusted to choose between the delta and the whole.

Queries of TPC-H, each as a stream table with `refresh_mode` `AUTO` and as others that have no choice, refreshed one
after the other after the same changes to every table but region, beside `REFRESH MATERIALIZED VIEW`. Every round
counts, from the first after the load on. A choice is right where the way that `AUTO` took is within 1.2 times of the
best of the ways that leave no choice, or within 3 ms of it: repetitions of one way differ as much. What took more than
20 s and three times as long as the best was left out of later rounds (–).
`make bench-tpch BENCH_ARGS="--choices --orders 15000"` repeats it for the refresh modes, with `--engines` for both
engines, too.
"""
SECTION = """
## {orders:,} orders

{conditions}. {queries} of the 22 queries, {rounds} rounds at each rate.

{verdicts}
"""
TABLE = """
### {orders:,} orders, {percent:g} % changed

| query | AUTO took |{heads} view |
|---|---|{rules}---:|
{rows}
"""
TOGETHER = "- At all rates together, {right} of {all} choices were right, {percent:.0f} %."
IN_ALL = "At all sizes and rates together, {right:,} of {all:,} choices were right, {percent:.0f} %."
COUNTED = re.compile(r"^- At all rates together, (\d+) of (\d+) choices", re.MULTILINE)
EXPECTED = 0.9


def write_choices(rounds: Sequence[Round], orders: int, conditions: Mapping[str, str], path: Path) -> None:
    """Replace the section of so many orders in the file, or add it."""
    percents = sorted({each.percent for each in rounds})
    by_percent = {percent: [each for each in rounds if each.percent == percent] for percent in percents}
    section = SECTION.format(
        orders=orders,
        conditions="; ".join(conditions.values()),
        queries=len({each.query for each in rounds}),
        rounds=max(each.number for each in rounds),
        verdicts="\n".join([*map(_verdict, by_percent.values()), _together(rounds)]),
    )
    tables = "\n\n".join(_table(found, orders) for found in by_percent.values())
    sections = {_orders(text): text for text in _sections(path)} | {orders: f"{section.strip()}\n\n{tables}"}
    parts = [HEAD.strip(), *_in_all(sections), *(sections[number] for number in sorted(sections))]
    path.write_text("\n\n".join(parts) + "\n")


def _sections(path: Path) -> Iterable[str]:
    text = path.read_text() if path.exists() else ""
    return (f"## {section.strip()}" for section in text.split("\n## ")[1:])


def _orders(section: str) -> int:
    return int(section.split()[1].replace(",", ""))


def _verdict(rounds: Sequence[Round]) -> str:
    right, strictly = sum(each.right for each in rounds), sum(each.strictly_right for each in rounds)
    taken = sum(each.lost <= (1.3 - 1) * each.best + 0.01 for each in rounds)
    worst = max(rounds, key=lambda each: each.lost)
    met = "met" if right >= EXPECTED * len(rounds) else "**missed**"
    return (
        f"- At {worst.percent:g} %, {right} of {len(rounds)} choices were right (at least 90 % expected: {met}),"
        f" {strictly} of them within 1.2 times; in {taken} rounds AUTO took at most 1.3 times the best way and 10 ms."
        f" It lost most with {_title(worst.query)} in round {worst.number}:"
        f" {_ms(worst.seconds['AUTO'])} as {worst.way}, {_ms(worst.best)} at best."
    )


def _together(rounds: Sequence[Round]) -> str:
    right = sum(each.right for each in rounds)
    return TOGETHER.format(right=right, all=len(rounds), percent=100 * right / len(rounds))


def _in_all(sections: Mapping[int, str]) -> list[str]:
    """Add up what the sections of several sizes tell."""
    found = [(int(right), int(of)) for text in sections.values() for right, of in COUNTED.findall(text)]
    right, of = (sum(numbers) for numbers in zip(*found, strict=True))
    return [IN_ALL.format(right=right, all=of, percent=100 * right / of)] if len(found) > 1 else []


def _table(rounds: Sequence[Round], orders: int) -> str:
    ways = list(dict.fromkeys(way for each in rounds for way in each.seconds))
    ways.sort(key=lambda way: (way != "AUTO", way.split()[1:], way))
    return TABLE.format(
        orders=orders,
        percent=rounds[0].percent,
        heads="".join(f" {way} |" for way in ways),
        rules="---:|" * len(ways),
        rows="\n".join(_row([each for each in rounds if each.query == query], ways) for query in _queries(rounds)),
    ).strip()


def _queries(rounds: Sequence[Round]) -> list[str]:
    return sorted({each.query for each in rounds})


def _row(rounds: Sequence[Round], ways: Sequence[str]) -> str:
    cells = [_title(rounds[0].query), ", ".join(each.way for each in rounds)]
    for way in ways:
        found = [each.seconds[way] for each in rounds if way in each.seconds]
        cells.append(_ms(median(found)) if found else "–")
    cells.append(_ms(median(each.view for each in rounds)))
    return f"| {' | '.join(cells)} |"


def _title(query: str) -> str:
    return f"Q{int(query[1:])}"


def _ms(seconds: float) -> str:
    return "failed" if seconds == inf else f"{seconds * 1e3:,.0f} ms"

"""Writes down how well AUTO chose: a section for each number of orders, of which a run replaces its own."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median

from benchmarks.tpch.choices import Round

HEAD = """# What AUTO chooses

<!-- Written by `python -m benchmarks.tpch --choices`; do not edit. -->

For whoever wonders whether `AUTO` can be trusted to choose between the delta and the whole.

Each of the 22 queries of TPC-H as three stream tables, with `refresh_mode` `AUTO`, `DIFFERENTIAL` and `FULL`, refreshed
one after the other after the same changes to every table but region, beside `REFRESH MATERIALIZED VIEW`. Every round
counts, from the first after the load on. A choice is right where the way that `AUTO` took is within 1.2 times of the
better way in the two modes that have no choice. `make bench-tpch BENCH_ARGS="--choices --orders 15000"` repeats it.
"""
SECTION = """
## {orders:,} orders

{conditions}

{verdicts}

| query |{heads}
|---|{rules}
{rows}
"""
RIGHT = 1.2
EXPECTED = 0.9


def write_choices(rounds: Sequence[Round], orders: int, conditions: Mapping[str, str], path: Path) -> None:
    """Replace the section of so many orders in the file, or add it."""
    percents = sorted({each.percent for each in rounds})
    section = SECTION.format(
        orders=orders,
        conditions="; ".join(conditions.values()) + ".",
        verdicts="\n".join(_verdict([each for each in rounds if each.percent == percent]) for percent in percents),
        heads="".join(f" ways at {percent:g} % | AUTO | DIFFERENTIAL | FULL | view |" for percent in percents),
        rules="---|---:|---:|---:|---:|" * len(percents),
        rows="\n".join(_row(rounds, query, percents) for query in sorted({each.query for each in rounds})),
    )
    sections = {_orders(text): text for text in _sections(path)} | {orders: section.strip()}
    path.write_text("\n\n".join([HEAD.strip(), *(sections[number] for number in sorted(sections))]) + "\n")


def _sections(path: Path) -> Iterable[str]:
    text = path.read_text() if path.exists() else ""
    return (f"## {section.strip()}" for section in text.split("\n## ")[1:])


def _orders(section: str) -> int:
    return int(section.split()[1].replace(",", ""))


def _verdict(rounds: Sequence[Round]) -> str:
    right = sum(each.way <= RIGHT for each in rounds)
    taken = sum(each.lost <= (1.3 - 1) * each.best + 0.01 for each in rounds)
    worst = max(rounds, key=lambda each: each.lost)
    met = "met" if right >= EXPECTED * len(rounds) else "**missed**"
    return (
        f"- At {worst.percent:g} %, {right} of {len(rounds)} choices were right (at least 90 % expected: {met}); in"
        f" {taken} rounds AUTO took at most 1.3 times the better mode and 10 ms."
        f" It lost most with {_title(worst.query)} in round {worst.number}:"
        f" {_ms(worst.seconds['AUTO'])} as {worst.action}, {_ms(worst.best)} at best."
    )


def _row(rounds: Sequence[Round], query: str, percents: Sequence[float]) -> str:
    cells = [_title(query)]
    for percent in percents:
        found = [each for each in rounds if (each.query, each.percent) == (query, percent)]
        cells.append(" ".join(each.action[0] for each in found))
        cells += [_ms(median(each.seconds[mode] for each in found)) for mode in ("AUTO", "DIFFERENTIAL", "FULL")]
        cells.append(_ms(median(each.view for each in found)))
    return f"| {' | '.join(cells)} |"


def _title(query: str) -> str:
    return f"Q{int(query[1:])}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.0f} ms"

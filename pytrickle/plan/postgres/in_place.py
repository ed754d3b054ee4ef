"""Which change buffers a query reads in place, and so in parallel, instead of through an entry of its WITH list.

An entry is computed once, by one process, before anything reads it. For many changes that takes as long as the join.
"""

import re
from collections.abc import Mapping

from pytrickle.catalog.definition import ChangeRange, Source
from pytrickle.plan.algebra.relation import Join, Predicate, Scan, Version, leaves
from pytrickle.plan.postgres.buffer import changes_name, netted_changes, netted_columns
from pytrickle.plan.postgres.length import refuse_length
from pytrickle.plan.sql.dialect import parse_query
from pytrickle.plan.sql.fallible import may_fail

# Below, PostgreSQL would not read in parallel.
MANY = 50_000
ENTRY = "{name} AS {kept} (\n{text}\n)"


def open_changes(join: Join, ranges: Mapping[int, ChangeRange]) -> frozenset[str]:
    """Name the changes of a join that may be read in place.

    A condition that can fail for some row must not be asked of changes outside the range, so those are not among them.
    Nor are those of which an entry tests each whether its key matters, by whatever such keys are made of.
    """
    deltas = [leaf for leaf in leaves(join) if isinstance(leaf, Scan) and leaf.version is Version.DELTA]
    many = [leaf for leaf in deltas if leaf.entry is None and ranges[leaf.relid].delta_rows >= MANY]
    if not many or any(map(_may_fail, join.predicates)):
        return frozenset()
    return frozenset(changes_name(leaf.version, leaf.relid) for leaf in many)


def entered(entries: dict[str, str], text: str, name: str) -> str:
    """Add an entry to a WITH list, named after its kind, unless it is there; return its name."""
    found = next((known for known, each in entries.items() if each == text), f"{name}_{len(entries)}")
    entries[found] = text
    return found


def changes_entry(
    entries: dict[str, str], source: Source, version: Version, change_range: ChangeRange, read: tuple[str, ...]
) -> str:
    """Add the changes of a source, of which some columns are read, to a WITH list; return the name of the entry."""
    version = read_as(version, change_range)
    columns = netted_columns(source, version, change_range, read)
    text, name = netted_changes(source, version, change_range, columns), changes_name(version, source.relid)
    if columns != source.used:
        return entered(entries, text, name)
    entries.setdefault(name, text)
    return name


def read_as(version: Version, change_range: ChangeRange) -> Version:
    """Return the version whose entry has the changes of a version.

    Without changes beyond the new frontier, all since the old one are those between them. Where these may be read in
    place they are left alone: an entry that is read twice is not.
    """
    same = version is Version.PAST and not change_range.future_rows and change_range.delta_rows < MANY
    return Version.DELTA if same else version


def with_list(entries: Mapping[str, str], in_place: frozenset[str], query: str) -> str:
    """Put a WITH list before a query; entries `in_place` are computed where they are read, if that is one place.

    Raise DeltaTooLong where all of it together is too long.
    """
    refuse_length(sum(map(len, entries.values())) + len(query))
    if not entries:
        return query
    whole = "\n".join([*entries.values(), query])
    once = {name for name in in_place if _reads(name, whole) == 1}
    listed = ",\n".join(
        ENTRY.format(name=name, text=text, kept="NOT MATERIALIZED" if name in once else "MATERIALIZED")
        for name, text in entries.items()
    )
    return f"WITH {listed}\n{query}"


def _reads(name: str, text: str) -> int:
    return len(re.findall(rf"\b{name}\b", text))


def _may_fail(predicate: Predicate) -> bool:
    return predicate.equality is None and any(map(may_fail, parse_query(f"SELECT {predicate.expr.sql}").expressions))

"""What keeps a delta from reaching a source by index lookups, and the statement that would help."""

from collections.abc import Container
from dataclasses import dataclass, replace

from pytrickle.catalog.definition import Definition, Source
from pytrickle.plan.algebra.delta import at, blocks_of, differentiate
from pytrickle.plan.algebra.relation import (
    Column,
    Derived,
    Function,
    Join,
    Leaf,
    Operation,
    Project,
    Relation,
    Scan,
    UnionAll,
    Version,
    leaves,
    operations,
    relids,
)
from pytrickle.plan.postgres.eager_sum import Compared
from pytrickle.plan.postgres.equated import equated_columns
from pytrickle.plan.postgres.from_item import table_name
from pytrickle.plan.sql.dialect import quote


@dataclass(frozen=True, slots=True)
class MissingIndex:
    """A join column through which a delta cannot reach a source without reading all of it."""

    table: str
    column: str

    @property
    def statement(self) -> str:
        """The statement that creates the index."""
        return f"CREATE INDEX ON {self.table} ({quote(self.column)})"


def buffers_suffice(parts: tuple[Relation, ...]) -> bool:
    """Whether the unfolded parts of a delta read nothing but buffered changes."""
    found = (leaf for part in parts for block in blocks_of(part) for leaf in leaves(block))
    return all(isinstance(leaf, Scan) and not _is_table(leaf) for leaf in found)


def missing_for(parts: tuple[Relation, ...], definition: Definition) -> tuple[MissingIndex, ...]:
    """Name all indexes that the unfolded parts of a delta lack, each once."""
    blocks = [block for part in parts for block in blocks_of(part)]
    direct = [index for block in blocks for index in _missing_in(block, definition)]
    below = [index for operation in operations(UnionAll(parts)) for index in missing_below(operation, definition)]
    return tuple(dict.fromkeys(direct + below))


def missing_indexes(block: Project, definition: Definition) -> tuple[MissingIndex, ...]:
    """Follow equalities from the buffered scans of a block; name what keeps a plain table from being reached."""
    reached = {leaf.alias for leaf in leaves(block) if not _is_table(leaf) and not isinstance(leaf, Function)}
    return _unreached(block, reached, definition)


def missing_below(
    operation: Operation, definition: Definition, names: frozenset[str] | None = None
) -> tuple[MissingIndex, ...]:
    """Name what keeps the touched keys of an operation, or those of certain names, from reaching what it reads."""
    if operation.linear:
        return _missing_from_changes(operation, definition)
    if not operation.keys:
        return ()
    known = frozenset(operation.keys) if names is None else names
    found: list[MissingIndex] = []
    for block in blocks_of(operation.input):
        keys = {expr.column for name, expr in block.columns if name in known and expr.column}
        reached = {
            leaf.alias for leaf in leaves(block) if not isinstance(leaf, Scan) or _reached_by(leaf, keys, definition)
        }
        found += _missing_for_some_keys(block, keys, definition)
        block = Project(at(block.input, Version.CURRENT), block.columns)
        found += _unreached(block, reached, definition)
    return tuple(found)


def _missing_in(block: Project, definition: Definition) -> tuple[MissingIndex, ...]:
    return (*missing_indexes(block, definition), *_missing_for_some_keys(block, set(), definition))


def _missing_for_some_keys(block: Project, keys: set[Column], definition: Definition) -> tuple[MissingIndex, ...]:
    """Follow those keys of operations in a block that it equates, or asks for itself: others do not narrow a search.

    For groups by (a, b) that are joined by b alone, an index on a is of no use.
    """
    join = block.input
    assert isinstance(join, Join)
    equal = [each for predicate in join.predicates if (each := predicate.equality)]
    known = {side for each in equal for side in (each.left, each.right)} | keys
    found: list[MissingIndex] = []
    for leaf in join.inputs:
        if isinstance(leaf, Derived) and leaf.version is not Version.DELTA and not leaf.operation.linear:
            names = frozenset(column for alias, column in known if alias == leaf.alias)
            if names & frozenset(leaf.operation.keys) and not names >= frozenset(leaf.operation.keys):
                found += missing_below(leaf.operation, definition, names)
    return tuple(found)


def _missing_from_changes(operation: Operation, definition: Definition) -> tuple[MissingIndex, ...]:
    """Follow the changes of each source that a linear operation reads through its blocks, as if all had changed."""
    terms = differentiate(operation.input, relids(operation.input))
    blocks = (_with_tables(block) for term in terms for block in blocks_of(term))
    return tuple(dict.fromkeys(index for block in blocks for index in missing_indexes(block, definition)))


def _with_tables(block: Project) -> Project:
    """Read as tables all sources of a term but the one whose changes it is about."""
    join = block.input
    assert isinstance(join, Join)
    inputs = tuple(
        replace(leaf, version=Version.CURRENT) if isinstance(leaf, Scan) and leaf.version is not Version.DELTA else leaf
        for leaf in join.inputs
    )
    return replace(block, input=replace(join, inputs=inputs))


def _reached_by(scan: Scan, keys: set[Column], definition: Definition) -> bool:
    indexed = definition.source(scan.relid).indexed
    return any((scan.alias, column) in keys for column in indexed)


def _unreached(block: Project, reached: set[str], definition: Definition) -> tuple[MissingIndex, ...]:
    waiting = [leaf for leaf in leaves(block) if isinstance(leaf, Scan) and leaf.alias not in reached]
    while True:
        step = [scan for scan in waiting if _is_found(scan, block, reached, definition)]
        if not step:
            break
        reached = reached | {scan.alias for scan in step}
        waiting = [scan for scan in waiting if scan.alias not in reached]
    return tuple(_advice(scan, block, reached, definition) for scan in waiting)


def _equated(scan: Scan, block: Project, reached: Container[str], definition: Definition) -> list[str]:
    assert isinstance(block.input, Join)
    return list(equated_columns(scan, block.input, reached, definition))


def _narrowing(scan: Scan, block: Project, definition: Definition) -> list[str]:
    """List the columns of a source that are compared with a value that changed: they find the rows concerned."""
    assert isinstance(block.input, Join)
    compared = Compared.of(block, block.input)
    found = compared.narrowing(block.input, definition) if compared else ()
    return sorted(column for alias, column in found if alias == scan.alias)


def _is_table(leaf: Leaf) -> bool:
    return isinstance(leaf, Scan) and leaf.version is Version.CURRENT


def _is_found(scan: Scan, block: Project, reached: set[str], definition: Definition) -> bool:
    indexed = definition.source(scan.relid).indexed
    narrowing = _narrowing(scan, block, definition)
    equated = _equated(scan, block, reached, definition)
    return any(column in indexed for column in equated) or (bool(narrowing) and indexed.issuperset(narrowing))


def _advice(scan: Scan, block: Project, reached: set[str], definition: Definition) -> MissingIndex:
    source: Source = definition.source(scan.relid)
    everything = {leaf.alias for leaf in leaves(block)}
    columns = _equated(scan, block, reached, definition)
    columns = columns or _narrowing(scan, block, definition) or _equated(scan, block, everything, definition)
    return MissingIndex(table_name(source), columns[0] if columns else "")

"""Relations compiled to PostgreSQL: a query with the relation's columns and its weight, `pgt_weight`."""

from collections.abc import Callable, Mapping
from copy import copy as shallow
from dataclasses import dataclass, field, replace

from pytrickle.catalog.definition import ChangeRange, Definition
from pytrickle.plan.algebra.delta import MAX_PARTS, arrange, at, differentiate, unfold_all
from pytrickle.plan.algebra.relation import (
    BUFFERED,
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
)
from pytrickle.plan.postgres.buffer import corrected
from pytrickle.plan.postgres.consolidate import WEIGHT, before, consolidate, consolidate_at_once, new_less_old
from pytrickle.plan.postgres.eager_sum import Compared
from pytrickle.plan.postgres.from_item import function_item, table_name
from pytrickle.plan.postgres.in_place import changes_entry, open_changes, with_list
from pytrickle.plan.postgres.join_order import Reach, conditions, fenced, ordered_leaves
from pytrickle.plan.postgres.kept_groups import KeptGroups
from pytrickle.plan.postgres.moved_rows import share_moved
from pytrickle.plan.postgres.old_lookups import Lookups, folding, old_lookups, without
from pytrickle.plan.postgres.one_match import finds_one
from pytrickle.plan.postgres.semijoin import Semijoin, admit
from pytrickle.plan.postgres.touched_keys import ALIAS, Touched
from pytrickle.plan.postgres.weight import are_plain, weight
from pytrickle.plan.postgres.weighted import over_weighted, union_all
from pytrickle.plan.postgres.written_rows import as_written
from pytrickle.plan.sql.dialect import quote

TOUCHED_KEYS = "SELECT DISTINCT {keys} FROM {changed}"
NO_ROWS = "SELECT * FROM (\n{layout}\n) AS d WHERE false"


def always(operation: Operation, keys: frozenset[str]) -> bool:
    """Take every operation for one that can be computed for single keys."""
    return True


@dataclass(slots=True)
class Compiler:
    """Compiles relations that share one WITH list, whose entries come in the order in which they build on each other.

    Without ranges everything is read as the snapshot shows it. `worth_asking` says whether an operation is computed for
    one value after another of some keys, rather than once for all. `kept` groups at the old frontier are stored.
    """

    definition: Definition
    ranges: Mapping[int, ChangeRange] = field(default_factory=dict)
    admissions: Mapping[Operation, tuple[Semijoin, ...]] = field(default_factory=dict)
    worth_asking: Callable[[Operation, frozenset[str]], bool] = always
    kept: Mapping[Operation, KeptGroups] = field(default_factory=dict)
    entries: dict[str, str] = field(default_factory=dict)
    in_place: frozenset[str] = frozenset()
    deltas: dict[Operation, str] = field(default_factory=dict)
    wholes: dict[Operation, str] = field(default_factory=dict)
    everything: dict[Operation, str] = field(default_factory=dict)
    most_parts: int = MAX_PARTS

    def copy(self) -> "Compiler":
        """Start another query from the entries so far."""
        other = shallow(self)
        for name in ("entries", "deltas", "wholes", "everything"):
            setattr(other, name, dict(getattr(self, name)))
        return other

    @property
    def reads_whole_tables(self) -> bool:
        """Whether some operation is computed for all keys, so that index lookups do not help it."""
        return bool(self.wholes or self.everything)

    def rows(self, node: Relation, bound: frozenset[str] = frozenset(), touched: Touched | None = None) -> str:
        """Compile a relation to weighted rows: few values of the columns in `bound`, or those of the touched keys."""
        if isinstance(node, UnionAll):
            parts = share_moved(node.inputs, self.delta, self._from_scan, self.entries, self.definition)
            return union_all(self.rows(child, bound, touched) for child in parts)
        if isinstance(node, Project) and isinstance(node.input, Join):
            return self._select(node, bound, touched)
        raise TypeError(f"a {type(node).__name__} is not compiled alone")

    def within(self, query: str) -> str:
        """Put the WITH list before a query over compiled rows."""
        return with_list(self.entries, self.in_place, query)

    def parts(self, node: Relation) -> tuple[Relation, ...]:
        """Multiply out what corrects the current state; give up where that makes more than `most_parts`."""
        return unfold_all((node,), self.ranges, self.kept.keys(), self.most_parts)

    def _select(self, block: Project, bound: frozenset[str], touched: Touched | None) -> str:
        join = block.input
        assert isinstance(join, Join)
        items = [f"{expr.sql} AS {quote(name)}" for name, expr in block.columns]
        self.in_place |= open_changes(join, self.ranges)
        compared = Compared.of(block, join)
        rest = compared.without(join) if compared else join
        if touched:
            rest = replace(rest, predicates=rest.predicates + touched.predicates(block))
        changes = self.delta(compared.leaf) if compared else ""
        totals = {compared.leaf.alias: compared.total(changes)} if compared else {}
        text = "SELECT " + ", ".join([*items, f"{weight(join, totals)} AS {WEIGHT}"])
        lookups = old_lookups(rest, self.definition)
        if texts := self._from_items(replace(block, input=rest), bound, touched, compared, lookups):
            text += "\nFROM " + ", ".join(texts)
        tests = conditions(without(rest, lookups), self.ranges)
        tests += [compared.test(changes, join, self.definition)] if compared else []
        return f"{text}\nWHERE {' AND '.join(f'({test})' for test in tests)}" if tests else text

    def _from_items(
        self,
        block: Project,
        bound: frozenset[str],
        touched: Touched | None,
        compared: Compared | None,
        lookups: Lookups,
    ) -> list[str]:
        assert isinstance(block.input, Join)
        known = frozenset({ALIAS}) if touched else frozenset()
        ordered = ordered_leaves(block.input, known, lookups)
        reach = Reach.of(block, ordered, bound, known | (compared.beside if compared else frozenset()))
        texts = [touched.item] if touched else []
        for leaf in ordered:
            texts.append(self._from_item(leaf, reach, lookups))
            reach.take(leaf)
        return texts

    def _from_item(self, leaf: Leaf, reach: Reach, lookups: Lookups) -> str:
        alias = quote(leaf.alias)
        match leaf:
            case Function():
                return function_item(leaf)
            case Scan(version=version) if version in BUFFERED or version is Version.CURRENT:
                return self._from_scan(leaf)
            case Scan():
                return fenced(self._corrected(leaf), leaf, lookups.get(leaf.alias) or reach.links(leaf))
            case Derived(version=Version.DELTA):
                return f"{self.delta(leaf)} AS {alias}"
            case Derived(operation=operation) if operation in self.kept:
                return f"({self._kept(leaf)}) AS {alias}"
            case Derived():
                return self._derived(leaf, reach)

    def _from_scan(self, scan: Scan) -> str:
        table = table_name(self.definition.source(scan.relid))
        name = table if scan.version is Version.CURRENT else self._changes(scan.version, scan)
        return f"{scan.entry or name} AS {quote(scan.alias)}"

    def _kept(self, leaf: Derived) -> str:
        """Read kept groups at the old or the new frontier."""
        kept = self.kept[leaf.operation]
        if leaf.version is Version.OLD or not any(self.ranges[relid].changed for relid in kept.reads):
            return kept.stored
        return kept.current(self.delta(leaf).replace("pgt_delta_", "pgt_now_"))

    def _derived(self, leaf: Derived, reach: Reach) -> str:
        """Compute an operation for what is asked of it, or once for all where nothing restricts it."""
        operation, version, alias = leaf.operation, leaf.version, quote(leaf.alias)
        if operation.construct.consolidated:
            return self._consolidated(leaf, reach)
        if version is Version.NEW and not operation.keys and not operation.linear:
            return f"{self._whole(leaf)} AS {alias}"
        if bound := reach.is_bound(leaf):
            return fenced(self.state(operation, version, bound), leaf, [])
        entered = reach.entered(leaf)
        if entered and self.worth_asking(operation, entered):
            asked = reach.asked(leaf)
            one = finds_one(leaf, asked, reach.join, self.definition)
            return fenced(self.state(operation, version, entered), leaf, asked, one)
        if version is Version.NEW:
            return f"{self._everything(leaf)} AS {alias}"
        return fenced(self.state(operation, version, frozenset()), leaf, [])

    def _consolidated(self, leaf: Derived, reach: Reach) -> str:
        """Consolidate rows once for all, or for each row that asks by equality; no other condition may go below."""
        operation, version, alias = leaf.operation, leaf.version, quote(leaf.alias)
        if conditions := reach.equated(leaf):
            rows = self.rows(self._parts(operation, version)[0], reach.entered(leaf))
            asked = f"SELECT * FROM {fenced(rows, leaf, conditions)}"
            return f"LATERAL ({consolidate_at_once(operation, asked)}) AS {alias}"
        if version is Version.NEW:
            return f"{self._everything(leaf)} AS {alias}"
        return fenced(self.state(operation, version, frozenset()), leaf, [])

    def _changes(self, version: Version, scan: Scan) -> str:
        source = self.definition.source(scan.relid)
        return changes_entry(self.entries, source, version, self.ranges[scan.relid], scan.columns)

    def _corrected(self, scan: Scan) -> str:
        """OLD = CURRENT - PAST and NEW = CURRENT - FUTURE, as one subquery."""
        changes = self._changes(Version.PAST if scan.version is Version.OLD else Version.FUTURE, scan)
        return corrected(table_name(self.definition.source(scan.relid)), scan.columns, changes)

    def state(self, operation: Operation, version: Version, bound: frozenset[str]) -> str:
        """Compute an operation at the current state or at the new frontier, for few values of the bound columns."""
        if written := as_written(operation, version, self.definition, self.ranges):
            return written
        parts, plain = self._parts(operation, version)
        rows = self.rows(parts, bound)
        if operation.linear:
            return consolidate_at_once(operation, rows) if operation.construct.consolidated else rows
        return over_weighted(operation, rows, plain)

    def _parts(self, operation: Operation, version: Version) -> tuple[Relation, bool]:
        """Return the input of an operation at a version, and whether each of its rows has weight one."""
        parts = self.parts(at(operation.input, version))
        return UnionAll(parts), are_plain(parts)

    def delta(self, derived: Derived) -> str:
        """The keyed rule: op(NEW|K) - op(OLD|K) for the keys K that the input's delta touches, OLD = NEW - DELTA."""
        operation, alias = derived.operation, derived.alias
        if operation in self.deltas:
            return self.deltas[operation]
        name = self.deltas[operation] = f"pgt_delta_{alias}"
        arguments, exact = operation.arguments, operation.exact
        if operation.linear:
            self.entries[name] = consolidate(self._input_delta(operation), arguments, exact)
            return name
        changed, now = f"pgt_changed_{alias}", f"pgt_now_{alias}"
        self.entries[changed] = consolidate(self._input_delta(operation), arguments, exact)
        if kept := self.kept.get(operation):
            self.entries[now] = kept.increments(f"SELECT * FROM {changed}")
            self.entries[name] = kept.delta(now)
            return name
        if operation.keys:
            touched = Touched(f"pgt_keys_{alias}", operation.keys)
            self.entries[touched.name] = TOUCHED_KEYS.format(keys=", ".join(operation.keys), changed=changed)
            self.entries[now], plain = self._touched_input(operation, touched)
            new = over_weighted(operation, f"SELECT * FROM {now}", plain)
        else:
            new = f"SELECT * FROM {self._whole(derived)}"
            now = f"pgt_now_{self.wholes[operation]}"
        if (old := self._of_kept(operation)) is None:
            old = over_weighted(operation, before(now, changed, arguments), plain=False)
        self.entries[name] = consolidate(new_less_old(new, old), operation.columns, operation.columns_canonical)
        return name

    def _touched_input(self, operation: Operation, touched: Touched) -> tuple[str, bool]:
        parts, plain = self._parts(operation, Version.NEW)
        joined = self.rows(parts, touched=touched)
        if not operation.nullable:
            return joined, plain
        return touched.restricted(joined, self.rows(parts, frozenset(operation.keys))), plain

    def _everything(self, derived: Derived) -> str:
        """Compute an operation for all keys, once for all that read it so."""
        operation = derived.operation
        if operation not in self.everything:
            name = self.everything[operation] = f"pgt_all_{derived.alias}"
            self.entries[name] = self.state(operation, Version.NEW, frozenset())
        return self.everything[operation]

    def _of_kept(self, operation: Operation) -> str | None:
        """Compute an operation without keys at the old frontier, where all of its input is kept groups."""
        parts = unfold_all((at(operation.input, Version.OLD),), self.ranges, self.kept.keys())
        if operation.keys or not self.kept or not are_plain(parts):
            return None
        return over_weighted(operation, self.rows(UnionAll(parts)), plain=True)

    def _whole(self, derived: Derived) -> str:
        """Compute an operation that has no keys once: its input `pgt_now_`, its result `pgt_new_`."""
        operation = derived.operation
        if (alias := self.wholes.get(operation)) is None:
            alias = self.wholes[operation] = derived.alias
            # All rows are read, so that kept groups need not be told apart into those that are stored and their change.
            parts = unfold_all((at(operation.input, Version.NEW),), self.ranges, most=self.most_parts)
            now, plain = f"pgt_now_{alias}", are_plain(parts)
            self.entries[now] = self.rows(UnionAll(parts))
            self.entries[f"pgt_new_{alias}"] = over_weighted(operation, f"SELECT * FROM {now}", plain)
        return f"pgt_new_{alias}"

    def taken_in(self, kept: KeptGroups) -> str:
        """Compute the increments of kept groups."""
        return self.within(kept.increments(self._input_delta(kept.operation)))

    def _input_delta(self, operation: Operation) -> str:
        changed = frozenset(relid for relid, change_range in self.ranges.items() if change_range.changed)
        terms = differentiate(arrange(operation.input, self.ranges), changed)
        parts = unfold_all(terms, self.ranges, self.kept.keys(), fold=folding(self.definition, self.ranges))
        if not parts:
            return NO_ROWS.format(layout=compile_rows(at(operation.input, Version.CURRENT), self.definition))
        if admissions := self.admissions.get(operation):
            parts = admit(parts, admissions, self.ranges, self._from_scan, self.entries)
        return self.rows(UnionAll(parts))


def compile_rows(node: Relation, definition: Definition) -> str:
    """Compile a relation all of whose leaves are read as the snapshot shows them."""
    return Compiler(definition).rows(node)


def compile_state(operation: Operation, definition: Definition) -> str:
    """Compile an operation whose leaves are read as the snapshot shows them."""
    return Compiler(definition).state(operation, Version.CURRENT, frozenset())

"""What is known of relations and expressions: their types, their collations, and which of their values are one."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from sqlglot import exp

from pytrickle.catalog.definition import Definition, SourceColumn
from pytrickle.plan.algebra.delta import at
from pytrickle.plan.algebra.relation import Operation, Relation, Scan, Version
from pytrickle.plan.postgres.compile import compile_rows, compile_state
from pytrickle.plan.query.block import Block, is_row_text, project
from pytrickle.plan.query.probe import Probe
from pytrickle.plan.sql.fallible import written_type
from pytrickle.plan.sql.three_valued import is_null
from pytrickle.plan.sql.types import all_exact, casts_within_family, is_collatable, is_moment, mixes_time_zones


@dataclass(slots=True)
class Facts:
    """Answers questions about relations, asking the server once for each; hands out aliases unique within a query."""

    definition: Definition
    probe: Probe
    aliases: Iterator[int] = field(default_factory=lambda: count(1))
    known_types: dict[str, tuple[str, ...]] = field(default_factory=dict)
    known_collations: dict[str, tuple[str | None, ...]] = field(default_factory=dict)
    known_key_types: dict[tuple[str, str], tuple[str, str] | None] = field(default_factory=dict)
    known_texts: dict[str, bool] = field(default_factory=dict)
    known_domains: dict[str, tuple[str | None, ...]] = field(default_factory=dict)

    def alias(self) -> str:
        """Return a fresh alias of a leaf."""
        return f"t{next(self.aliases)}"

    def types_of(self, node: Relation | Operation) -> tuple[str, ...]:
        """Ask for the types of a relation's columns, or of an operation's."""
        text = self._text(node)
        if text not in self.known_types:
            self.known_types[text] = self.probe.column_types(text)
        found = self.known_types[text]
        return found[: len(node.columns)] if isinstance(node, Operation) else found[:-1]

    def collations_of(self, node: Relation | Operation) -> tuple[str | None, ...]:
        """Ask for the collations of a relation's columns, or of an operation's; None for none and for the default."""
        types = self.types_of(node)
        if not any(map(is_collatable, types)):
            return (None,) * len(types)
        text = self._text(node)
        if text not in self.known_collations:
            self.known_collations[text] = self.probe.collations(text)
        return self.known_collations[text][: len(types)]

    def is_exact(self, node: Relation | Operation) -> bool:
        """Whether equal values of every column of a relation or of an operation are the same text."""
        return all_exact(self.types_of(node), self.definition)

    def has_one_text(self, type_name: str) -> bool:
        """Ask whether equal values of a type are the same text, apart from what a collation says of texts in it."""
        if type_name not in self.known_texts:
            self.known_texts[type_name] = self.probe.has_one_text(type_name)
        return self.known_texts[type_name]

    def domains_of(self, node: Relation | Operation) -> tuple[str | None, ...]:
        """Ask for the domains of a relation's columns, or of an operation's; None where a type is no domain."""
        types = self.types_of(node)
        if self.definition.plain_names:
            return (None,) * len(types)
        text = self._text(node)
        if text not in self.known_domains:
            self.known_domains[text] = self.probe.domains(text)
        return self.known_domains[text][: len(types)]

    def key_types(self, left: str, right: str) -> tuple[str, str] | None:
        """Ask for the types by whose own equality `=` compares values of two types; None if there are none."""
        if left == right and "." not in left:
            return left, right
        if (left, right) not in self.known_key_types:
            self.known_key_types[left, right] = self.probe.key_types(left, right)
        return self.known_key_types[left, right]

    def compares_as_it_groups(self, expression: exp.Expr, block: Block) -> bool:
        """Whether values that equal the same value of another expression are in one group.

        They are not where a collation of the other side holds different texts for equal, nor where two moments without
        a time zone are the same moment with one, as happens when clocks are put forward.
        """
        bytewise = self.definition.bytewise
        column = self.source_column(expression, block)
        zones = mixes_time_zones(self.definition)
        if (bytewise and not zones) or (not bytewise and column is not None and not column.deterministic):
            return True
        rows = project(replace(block, predicates=(), negated=False), (expression,))
        (type_name,) = self.types_of(rows)
        return not (not bytewise and is_collatable(type_name)) and not (zones and is_moment(type_name))

    def never_null(self, expression: exp.Expr, block: Block) -> bool:
        """Whether an expression cannot be NULL: a literal, or a column of a scan in the block that is never NULL."""
        node = expression.unnest()
        if isinstance(node, exp.Literal | exp.Boolean) or is_row_text(node):
            return True
        if isinstance(node, exp.Cast):
            return not is_null(node) and self.never_null(node.this, block) and self._cast_gives_a_value(node, block)
        found = self.source_column(node, block)
        return found is not None and not found.nullable

    def declared_type(self, column: exp.Expr, block: Block) -> str | None:
        """Return the type of a column of a source; None of anything else."""
        found = self.source_column(column, block)
        return found.type_name if found else None

    def _cast_gives_a_value(self, cast: exp.Cast, block: Block) -> bool:
        node, target = cast.this.unnest(), written_type(cast.to)
        if is_row_text(cast) or isinstance(node, exp.Literal | exp.Boolean):
            return "." not in target
        column = self.source_column(node, block)
        source = written_type(node.to) if isinstance(node, exp.Cast) else column.type_name if column else ""
        return casts_within_family(source, target)

    def source_column(self, expression: exp.Expr, block: Block) -> SourceColumn | None:
        """Find the column of a source that an expression is."""
        node = expression.unnest()
        scan = next((leaf for leaf in block.leaves if isinstance(node, exp.Column) and leaf.alias == node.table), None)
        return self.definition.source(scan.relid).column(node.name) if isinstance(scan, Scan) else None

    def _text(self, node: Relation | Operation) -> str:
        if isinstance(node, Operation):
            return compile_state(node, self.definition)
        return compile_rows(at(node, Version.CURRENT), self.definition)

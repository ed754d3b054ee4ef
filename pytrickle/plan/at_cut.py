"""The defining query at cuts, as plain SQL: time travel for constructs that have no delta rule."""

from sqlglot import exp

from pytrickle.catalog.definition import ChangeRange, Definition, Source
from pytrickle.errors import NotDifferentiable, QueryRefused
from pytrickle.plan.algebra.relation import Version
from pytrickle.plan.postgres.buffer import condition
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.postgres.from_item import table_name
from pytrickle.plan.query.block import type_of
from pytrickle.plan.query.calls import is_call
from pytrickle.plan.query.probe import Probe
from pytrickle.plan.sql.dialect import parse_query, quote, render, row_text
from pytrickle.plan.sql.operators import by_window_names

REPLACED = "replaced"
# R@new = R - FUTURE as rows: of equal rows and the changes of them, as many are left as there were copies. Each change
# is of one copy, so that copies that went later are as many as their changes. Nothing is joined, for PostgreSQL may
# expect a single change where there are many. All names are reserved ones, which no source has.
AT_CUT = """\
SELECT {every} FROM (
    SELECT {listed}row_number() OVER alike AS pgt_copy, sum({weight}) OVER alike AS pgt_net
    FROM (
        SELECT {listed}1 AS {weight}, {text} AS pgt_text FROM {table}
        UNION ALL
        SELECT {listed}-{weight}, {text} FROM {buffer} WHERE {later}
    ) AS r WINDOW alike AS (PARTITION BY pgt_text COLLATE pg_catalog."C")
) AS r WHERE pgt_copy <= pgt_net"""


def query_at(definition: Definition, ranges: dict[int, ChangeRange], probe: Probe) -> str:
    """Write the defining query with every source read at its new frontier.

    Where nothing lies beyond the frontiers this is the query itself. Raise QueryRefused when the query cannot be
    rewritten, which happens only for syntax that the planner cannot reproduce.
    """
    found = rewound(ranges)
    return expanded(definition, found, probe) if found else current_query(definition)


def rewound(ranges: dict[int, ChangeRange]) -> dict[int, ChangeRange]:
    """Return the ranges whose sources hold changes beyond their new frontiers."""
    return {
        relid: change_range
        for relid, change_range in ranges.items()
        if change_range.new is not None and change_range.future_rows
    }


def current_query(definition: Definition) -> str:
    """Write the defining query over what its sources hold now."""
    return _by_the_view(definition) if _follows_path(definition) else _text(definition)


def expanded(definition: Definition, ranges: dict[int, ChangeRange], probe: Probe) -> str:
    """Write the defining query with its views replaced by their texts and the rewound sources by what they held."""
    body = _text(definition)
    try:
        if definition.needs_path:
            raise NotDifferentiable(definition.needs_path)
        tree = _expand(parse_query(body, definition.aggregates), definition, frozenset(ranges), probe, body)
    except NotDifferentiable as error:
        raise QueryRefused(
            f"{definition.qualified_name} cannot be read at a watermark: {error}.",
            "Use watermark_gating => 'gate' or 'none' for this stream table.",
        ) from error
    tables = [
        f"{_state_name(relid)} AS (\n{_multiset(definition.source(relid), change_range)}\n)"
        for relid, change_range in ranges.items()
    ]
    head = "WITH " + ",\n".join(tables) + "\n" if tables else ""
    return f"{head}SELECT * FROM (\n{render(tree)}\n) AS pgt_query"


def path_of(definition: Definition, query: str) -> tuple[str, ...]:
    """Write the setting by which functions that the hidden view calls find what they found for its creator.

    It is empty where the view is not read. All names within the view are settled. The SQL around it must name, without
    a schema, no operator and no function that could also take arguments of other types: somebody could offer a better
    match in the path.
    """
    return (f"SET LOCAL search_path = {definition.search_path}",) if query == _by_the_view(definition) else ()


def _by_the_view(definition: Definition) -> str:
    return f"SELECT * FROM {definition.hidden_view}"


def _follows_path(definition: Definition) -> bool:
    """Whether the query calls functions that must find the creator's path, itself or in views that it names."""
    return definition.wrapped or definition.needs_path is not None


def _text(definition: Definition) -> str:
    return definition.text.strip().rstrip(";")


def _expand(tree: exp.Expr, definition: Definition, rewound: frozenset[int], probe: Probe, original: str) -> exp.Expr:
    if not probe.same_query(by_window_names(original), render(tree)):
        raise NotDifferentiable("it uses syntax that the planner cannot reproduce exactly")

    # Listed before anything is replaced: a table carries the joins of its parenthesis, whose tables count too.
    for table in list(tree.find_all(exp.Table)):
        replacement = _replacement(table, definition, rewound, probe) if table.db else None
        if replacement is not None:
            table.replace(_replaced(table, replacement))
    for select in tree.find_all(exp.Select):
        _spell_out_keys(select, definition.aggregates)
    return tree


def _spell_out_keys(select: exp.Select, aggregates: frozenset[str]) -> None:
    """Group by columns that depend on a grouped primary key: a source's state at a cut has no primary key."""
    group = select.args.get("group")
    if group is None:
        return
    keys = [key.unnest() for key in group.expressions]
    if not keys or any(isinstance(key, exp.GroupingSets | exp.Rollup | exp.Cube | exp.Tuple) for key in keys):
        return

    def settled(node: exp.Expr) -> bool:
        return isinstance(node, exp.Query) or is_call(node, aggregates) or node.unnest() in keys

    having = select.args.get("having")
    nodes = (node for item in (*select.selects, *([having] if having else [])) for node in item.walk(prune=settled))
    dependent = [node for node in nodes if isinstance(node, exp.Column) and node not in keys]
    for column in dict.fromkeys(dependent):
        group.append("expressions", column.copy())


def _replacement(
    table: exp.Table, definition: Definition, rewound: frozenset[int], probe: Probe
) -> exp.Table | exp.Subquery | None:
    """A view is replaced by its text, a source by its state at the frontier, if it differs; a stream table always.

    Other views stay: their owners may read what is not captured, where who refreshes may not.
    """
    alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name, quoted=True))
    aliases = table.alias_column_names
    for view in definition.views:
        if (view.schema, view.name) == (table.db, table.name):
            inner = _expand(parse_query(view.text, definition.aggregates), definition, rewound, probe, view.text)
            alias.set("columns", [exp.to_identifier(name, quoted=True) for name in aliases])
            taken = view.stored or definition.wrapped or _holds_replacement(inner)
            return exp.Subquery(this=inner, alias=alias) if taken else None
    for source in definition.sources:
        if (source.schema, source.name) == (table.db, table.name) and source.relid in rewound:
            shown = (*aliases, *(column.name for column in source.columns[len(aliases) :]))
            alias.set("columns", [exp.to_identifier(name, quoted=True) for name in shown])
            _spell_out_rows(table, source, shown)
            return exp.Table(this=exp.to_identifier(_state_name(source.relid), quoted=True), alias=alias)
    return None


def _spell_out_rows(table: exp.Table, source: Source, columns: tuple[str, ...]) -> None:
    """Give whole rows of a table the table's type, which a row of its state at a cut has not."""
    alias, around = table.alias_or_name, table.find_ancestor(exp.Select)
    found = around.find_all(exp.Column) if around is not None else ()
    for column in [each for each in found if isinstance(each.this, exp.Star) and each.table == alias]:
        row = exp.Anonymous(this="ROW", expressions=[exp.column(name, table=alias, quoted=True) for name in columns])
        present = exp.Anonymous(this="num_nonnulls", expressions=[column.copy()])
        typed = exp.Cast(this=row, to=type_of(table_name(source)))
        column.replace(exp.Case(ifs=[exp.If(this=exp.GT(this=present, expression=exp.Literal.number(0)), true=typed)]))


def _holds_replacement(tree: exp.Expr) -> bool:
    return any(node.meta.get(REPLACED) for node in tree.find_all(exp.Table, exp.Subquery))


def _replaced(table: exp.Table, replacement: exp.Table | exp.Subquery) -> exp.Expr:
    if table.args.get("sample"):
        raise NotDifferentiable("it uses TABLESAMPLE")
    replacement.set("joins", table.args.get("joins"))
    replacement.meta[REPLACED] = True
    return replacement


def _state_name(relid: int) -> str:
    return f"pgt_at_{relid}"


def _multiset(source: Source, change_range: ChangeRange) -> str:
    """Write what a source held; columns that nothing reads are NULLs, which the alias list of a join counts."""
    every = ", ".join(quote(c.name) if c.name in source.used else f"NULL AS {quote(c.name)}" for c in source.columns)
    columns = ", ".join(quote(name) for name in source.used)
    listed = f"{columns}, " if columns else ""
    text = row_text(tuple(map(quote, source.used)))
    later = condition(Version.FUTURE, change_range)
    return AT_CUT.format(
        every=every,
        listed=listed,
        text=text,
        table=table_name(source),
        weight=WEIGHT,
        buffer=source.buffer,
        later=later,
    )

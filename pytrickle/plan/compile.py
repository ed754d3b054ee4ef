"""Relations compiled to PostgreSQL: a query with the relation's columns and its weight, `pgt_weight`."""

from pytrickle.catalog.definition import Definition, Source
from pytrickle.plan.algebra import BUFFERED, Join, Project, Relation, Scan, UnionAll, Version
from pytrickle.plan.dialect import quote

WEIGHT = "pgt_weight"


def compile_rows(node: Relation, definition: Definition) -> str:
    """Compile a relation; buffered scans read the common table expressions of `changes_name`."""
    match node:
        case UnionAll(inputs=inputs):
            return "\nUNION ALL\n".join(compile_rows(child, definition) for child in inputs)
        case Project(input=Join() as join, columns=columns):
            items = [f"{expr.sql} AS {quote(name)}" for name, expr in columns]
            return _select([*items, f"{_weight(join)} AS {WEIGHT}"], join, definition)
        case _:
            raise TypeError(f"a {type(node).__name__} is not compiled alone")


def changes_name(version: Version, relid: int) -> str:
    """Name the common table expression that holds one source's buffered changes of one version."""
    return f"pgt_{version.value}_{relid}"


def table_name(source: Source) -> str:
    """Write a source's qualified, quoted name."""
    return f"{quote(source.schema)}.{quote(source.name)}"


def _select(items: list[str], join: Join, definition: Definition) -> str:
    text = "SELECT " + ", ".join(items)
    if join.inputs:
        text += "\nFROM " + ", ".join(_from_item(child, definition) for child in join.inputs)
    if join.predicates:
        text += "\nWHERE " + " AND ".join(f"({predicate.expr.sql})" for predicate in join.predicates)
    return text


def _from_item(scan: Relation, definition: Definition) -> str:
    if not isinstance(scan, Scan):
        raise TypeError("joins are flattened to scans before they are compiled")
    if scan.version in BUFFERED:
        return f"{changes_name(scan.version, scan.relid)} AS {quote(scan.alias)}"
    if scan.version is Version.CURRENT:
        return f"{table_name(definition.source(scan.relid))} AS {quote(scan.alias)}"
    return f"({_corrected(scan, definition)}) AS {quote(scan.alias)}"


def _corrected(scan: Scan, definition: Definition) -> str:
    """OLD = CURRENT - PAST and NEW = CURRENT - FUTURE, as one subquery."""
    columns = "".join(f"{quote(name)}, " for name in scan.columns)
    changes = changes_name(Version.PAST if scan.version is Version.OLD else Version.FUTURE, scan.relid)
    return (
        f"SELECT {columns}1 AS {WEIGHT} FROM {table_name(definition.source(scan.relid))} "
        f"UNION ALL SELECT {columns}-{WEIGHT} FROM {changes}"
    )


def _weight(join: Join) -> str:
    leaves = [child for child in join.inputs if isinstance(child, Scan)]
    sign = -1 if sum(leaf.negated for leaf in leaves) % 2 else 1
    factors = [f"{quote(leaf.alias)}.{WEIGHT}" for leaf in leaves if leaf.version is not Version.CURRENT]
    return "CAST(" + " * ".join([str(sign), *factors]) + " AS bigint)"

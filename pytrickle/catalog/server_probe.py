"""The planner's questions, answered by a server without running anything."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf

import psycopg
from psycopg import sql

from pytrickle.catalog.definition import Definition
from pytrickle.catalog.probed_columns import (
    NO_ROWS,
    collations,
    domains,
    raise_unless_about_the_query,
    splitting,
)
from pytrickle.database import SAFE_PATH, filled

CHOSEN = """
SELECT coalesce(
        (SELECT m.mirrored::bigint FROM pgtrickle_private.mirrored_operators() AS m WHERE m.mirror = chosen),
        chosen::bigint),
    eq[1]::bigint, eq[2]::bigint
FROM pg_catalog.pg_rewrite, LATERAL (SELECT substring(ev_action::text, ':opno ([0-9]+)')::oid) AS o (chosen),
    LATERAL (SELECT array_agg(m[1]) FROM regexp_matches(ev_action::text, ':eqop ([0-9]+)', 'g') AS m) AS g (eq)
WHERE ev_class = %s::regclass
"""
# Operators of one family agree across types, as the family's author vouches.
AGREE = """
SELECT %(compared)s = %(grouped)s OR EXISTS (
    SELECT FROM pg_amop AS a JOIN pg_amop AS b USING (amopfamily, amopmethod, amopstrategy)
    WHERE a.amopopr = %(compared)s AND b.amopopr = %(grouped)s AND amopmethod = 403 AND amopstrategy = 3
        AND CASE %(side)s WHEN 0 THEN a.amoplefttype = b.amoplefttype ELSE a.amoprighttype = b.amoprighttype END)
"""
# All parts of a type: the elements of an array, what a domain or a range is made of, the columns of a row.
PARTS = """
WITH RECURSIVE part (oid, typmod) AS (
    SELECT CAST(CAST(%s AS regtype) AS oid), -1
    UNION
    SELECT inner_part.oid, inner_part.typmod
    FROM part JOIN pg_type AS t USING (oid), LATERAL (
        SELECT t.typbasetype, t.typtypmod WHERE t.typtype = 'd'
        UNION ALL SELECT t.typelem, part.typmod WHERE t.typsubscript = CAST('array_subscript_handler' AS regproc)
        UNION ALL SELECT rngsubtype, -1 FROM pg_range WHERE t.oid IN (rngtypid, rngmultitypid)
        UNION ALL SELECT atttypid, atttypmod FROM pg_attribute
            WHERE attrelid = t.typrelid AND attnum > 0 AND NOT attisdropped
    ) AS inner_part (oid, typmod)
)
"""
# Of types that are made of others: by a default operator class of their own different values may be equal.
OWN_CLASS = """
(t.typtype <> 'b' OR t.typsubscript = CAST('array_subscript_handler' AS regproc)) AND EXISTS (
    SELECT FROM pg_opclass AS o JOIN pg_am AS m ON m.oid = o.opcmethod
    WHERE o.opcintype = t.oid AND o.opcdefault AND m.amname IN ('btree', 'hash'))
"""
HAS_OWN_CLASS = f"{PARTS}SELECT bool_or({OWN_CLASS}) FROM part JOIN pg_type AS t USING (oid)"
ONE_TEXT = f"""{PARTS}
SELECT NOT bool_or({OWN_CLASS}) AND bool_and(
    t.typtype IN ('e', 'd', 'c', 'r', 'm')
    OR t.typsubscript = CAST('array_subscript_handler' AS regproc)
    OR (t.typname IN ('numeric', 'bpchar') AND part.typmod >= 0)
    OR t.typname IN (
        'bit', 'bool', 'bytea', 'char', 'cidr', 'date', 'inet', 'int2', 'int4', 'int8', 'macaddr', 'macaddr8', 'money',
        'name', 'oid', 'pg_lsn', 'text', 'time', 'timestamp', 'timestamptz', 'timetz', 'uuid', 'varbit',
        'varchar', 'xid8'
    )
) AND bool_and(
    t.typnamespace = CAST('pg_catalog' AS regnamespace) OR t.typtype <> 'b'
    OR t.typsubscript = CAST('array_subscript_handler' AS regproc)
)
FROM part JOIN pg_type AS t USING (oid)
"""
ENUMERATION_OR_RANGE = "SELECT typtype IN ('e', 'r', 'm') FROM pg_type WHERE oid = CAST(%s AS regtype)"
ENUMERATION = "SELECT typtype = 'e' FROM pg_type WHERE oid = CAST(%s AS regtype)"
AGAIN = """
SELECT pgtrickle_private.chosen_names(%(view)s::regclass) = pgtrickle_private.chosen_names(%(again)s::regclass),
    coalesce(
        pgtrickle_private.unprinted_difference(%(view)s::regclass, %(again)s::regclass),
        pgtrickle_private.path_dependence(%(again)s::regclass)
    )
"""
TYPE_NAMES = """
SELECT format_type(t.oid, t.typmod)
FROM unnest(%s::oid[], %s::integer[]) WITH ORDINALITY AS t (oid, typmod, number) ORDER BY t.number
"""
PLANNED = "EXPLAIN (COSTS off)\n{query}"
HASHED = "SELECT hash_record_extended(ROW({values}), 0)"
EQUALITIES = """
CREATE TEMP VIEW pgt_probe AS
SELECT DISTINCT q.l, q.r FROM (SELECT CAST(NULL AS {left}) AS l, CAST(NULL AS {right}) AS r) AS q WHERE q.l = q.r
"""
# Temporary views are in a schema that comes into being with the session's first one. If that is rolled back, so is the
# schema: each probe would create it anew, whereupon PostgreSQL makes every plan anew that the session has kept.
KEEP_TEMPORARY_SCHEMA = """
DO $$
BEGIN
    IF pg_catalog.pg_my_temp_schema() = 0
        AND pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMPORARY') THEN
        CREATE TEMP VIEW pgt_probe AS SELECT;
        DROP VIEW pg_temp.pgt_probe;
    END IF;
END
$$
"""
# What is asked takes little, but may look dear to PostgreSQL, which would compile it first.
NOT_COMPILED = "SET LOCAL jit = off"
IMPLIED = "an operator that its text does not name, such as that of IN or NULLIF, and only the search_path finds"


@dataclass(frozen=True, slots=True)
class ServerProbe:
    """A Probe on one connection, inside a transaction that is rolled back."""

    connection: psycopg.Connection

    def column_types(self, query: str) -> tuple[str, ...]:
        """Return the full type name of every column of a query, which PostgreSQL must be able to plan."""
        with splitting(self.connection):
            self.connection.execute(filled(PLANNED, query=query))
            cursor = self.connection.execute(filled(NO_ROWS, query=query))
            result = cursor.pgresult
            count = result.nfields if result else 0
            pairs = [(result.ftype(i), result.fmod(i)) for i in range(count)] if result else []
            return self._type_names(pairs)

    def collations(self, query: str) -> tuple[str | None, ...]:
        """Return the collation of every column of a query, as it is written; None for none and for the default one."""
        return collations(self.connection, query)

    def domains(self, query: str) -> tuple[str | None, ...]:
        """Return the domain of every column of a query, whose types are told without; None where it has none."""
        return domains(self.connection, query)

    def same_query(self, first: str, second: str) -> bool:
        """Tell whether PostgreSQL prints both texts alike once it has parsed them."""
        if first == second:
            return True
        try:
            with self.connection.transaction(force_rollback=True):
                return self._printed(first, "pgt_probe_1") == self._printed(second, "pgt_probe_2")
        except psycopg.Error as error:
            raise_unless_about_the_query(error)
            return False

    def needs_path(self, definition: Definition) -> str | None:
        """Name what makes the texts of a definition mean something else than at creation, or depend on the path."""
        own = (definition.hidden_view, definition.text)
        views = [(sql.Identifier(view.schema, view.name).as_string(), view.text) for view in definition.views]
        found = (self._read_again(*each) for each in (own, *views))
        return next((reason for reason in found if reason), None)

    def key_types(self, left: str, right: str) -> tuple[str, str] | None:
        """Return for each of two types that `=` compares the type whose values are grouped as they are compared.

        That is the type itself, or else the one to which PostgreSQL casts it for the comparison; None where that is
        grouped by another equality. Types that cannot be grouped at all are left as they are.
        """
        used = self._equalities(left, right)
        if used is None:
            return left, right
        compared, *grouped = used
        cast = self._operands(compared)
        alone = [self._equalities(name, name) for name in cast]
        own = [self._agree(compared, by, side) for side, by in enumerate(grouped)]
        common = [each is not None and self._agree(compared, each[1], side) for side, each in enumerate(alone)]
        if not all(mine or other for mine, other in zip(own, common, strict=True)):
            return None
        one, other = (name if mine else to for name, mine, to in zip((left, right), own, cast, strict=True))
        return one, other

    def hashable(self, types: tuple[str, ...]) -> tuple[bool, ...]:
        """Tell for every type whether its values can be hashed.

        Where a type within a row has an operator class of its own, PostgreSQL may hash equal rows differently: it does
        not tell that class's function whether it was given a seed, which only functions in C do not ask.
        """
        distinct = tuple(dict.fromkeys(types))
        own = [name for name in distinct if "." in name and self._has_own_class(name)]
        if not own and self._can_be_hashed(*distinct):
            return (True,) * len(types)
        known = {name: name not in own and self._can_be_hashed(name) for name in distinct}
        return tuple(known[name] for name in types)

    def estimated_rows(self, query: str) -> float:
        """Return how many rows PostgreSQL expects of a query; infinitely many where it cannot plan it."""
        try:
            with self.connection.transaction():
                row = self.connection.execute(filled("EXPLAIN (FORMAT JSON) {query}", query=query)).fetchone()
        except psycopg.Error as error:
            raise_unless_about_the_query(error)
            return inf
        return float(row[0][0]["Plan"]["Plan Rows"]) if row else inf

    def is_enumeration(self, type_name: str) -> bool:
        """Tell whether a type is an enumeration, neither a domain of one nor an array."""
        row = self.connection.execute(ENUMERATION, (type_name,)).fetchone()
        return bool(row and row[0])

    def is_enumeration_or_range(self, type_name: str) -> bool:
        """Tell whether a type is an enumeration, a range or a multirange, no domain of one."""
        row = self.connection.execute(ENUMERATION_OR_RANGE, (type_name,)).fetchone()
        return bool(row and row[0])

    def has_one_text(self, type_name: str) -> bool:
        """Tell whether equal values of a type are the same text, apart from what a collation says of texts in it."""
        row = self.connection.execute(ONE_TEXT, (type_name,)).fetchone()
        return bool(row and row[0])

    def _type_names(self, types: Sequence[tuple[int, int]]) -> tuple[str, ...]:
        oids, modifiers = [oid for oid, _ in types], [modifier for _, modifier in types]
        return tuple(name for (name,) in self.connection.execute(TYPE_NAMES, (oids, modifiers)))

    def _printed(self, query: str, name: str) -> str:
        view = filled("CREATE TEMP VIEW {name} AS {query}", name=sql.Identifier(name), query=query.strip().rstrip(";"))
        self.connection.execute(view)
        row = self.connection.execute("SELECT pg_get_viewdef(%s::regclass)", (f"pg_temp.{name}",)).fetchone()
        return str(row[0]) if row else ""

    def _read_again(self, view: str, text: str) -> str | None:
        try:
            with self.connection.transaction(force_rollback=True):
                self._printed(text, "pgt_probe")
                row = self.connection.execute(AGAIN, {"view": view, "again": "pg_temp.pgt_probe"}).fetchone()
        except psycopg.Error as error:
            raise_unless_about_the_query(error)
            return IMPLIED
        alike, dependence = row or (False, None)
        return dependence or (None if alike else IMPLIED)

    def _equalities(self, left: str, right: str) -> tuple[int, int, int] | None:
        """Return the operators by which PostgreSQL compares two types, groups the first and groups the second.

        A view keeps what PostgreSQL has chosen.
        """
        try:
            with self.connection.transaction(force_rollback=True):
                self.connection.execute(filled(EQUALITIES, left=left, right=right))
                row = self.connection.execute(CHOSEN, ("pg_temp.pgt_probe",)).fetchone()
        except psycopg.Error as error:
            raise_unless_about_the_query(error)
            return None
        return (row[0], row[1], row[2]) if row else None

    def _operands(self, operator: int) -> tuple[str, str]:
        """Return the types that an operator takes."""
        text = "SELECT format_type(oprleft, -1), format_type(oprright, -1) FROM pg_operator WHERE oid = %s"
        row = self.connection.execute(text, (operator,)).fetchone()
        return (row[0], row[1]) if row else ("", "")

    def _agree(self, compared: int, grouped: int, side: int) -> bool:
        """Whether values that equal the same value by one operator are those that are equal by the other one."""
        row = self.connection.execute(AGREE, {"compared": compared, "grouped": grouped, "side": side}).fetchone()
        return bool(row and row[0])

    def _has_own_class(self, type_name: str) -> bool:
        row = self.connection.execute(HAS_OWN_CLASS, (type_name,)).fetchone()
        return bool(row and row[0])

    def _can_be_hashed(self, *types: str) -> bool:
        values = ", ".join(f"CAST(NULL AS {name})" for name in types)
        try:
            with self.connection.transaction():
                self.connection.execute(filled(HASHED, values=values))
        except psycopg.Error as error:
            raise_unless_about_the_query(error)
            return False
        return True


@contextmanager
def server_probe(connection: psycopg.Connection) -> Iterator[ServerProbe]:
    """Open a probe on an autocommit connection; what it creates is rolled back at the end."""
    connection.execute(KEEP_TEMPORARY_SCHEMA)
    with connection.transaction(force_rollback=True):
        connection.execute(filled("SET LOCAL search_path = {path}", path=SAFE_PATH))
        connection.execute(NOT_COMPILED)
        yield ServerProbe(connection)

"""Types and their awkward values: NULL-heavy, few, and with everything that equality treats specially."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Type:
    """A column type; `ambiguous` values may be equal without being identical, such as 1.0 and 1.00.

    `ordered` says whether min() and max() take it, `summed` whether sum() and avg() do. A `blurred` column holds values
    of an ambiguous type that something chose among equal ones, so that its text is not determined.
    """

    name: str
    texts: tuple[str, ...]
    family: str = "opaque"
    ordered: bool = True
    summed: bool = False
    ambiguous: bool = False
    blurred: bool = False

    def chosen(self) -> "Type":
        """The type of a value that was chosen among equal ones."""
        return replace(self, blurred=True) if self.ambiguous else self

    def literals(self) -> tuple[str, ...]:
        """Write the type's values as SQL."""
        return tuple(f"'{text}'::{self.name}" for text in self.texts)


INT = Type("integer", ("-1", "0", "1", "2", "7"), "int", summed=True)
SMALLINT = Type("smallint", ("-1", "0", "1", "2"), "int", summed=True)
BIGINT = Type("bigint", ("-1", "0", "1", "2", "9000000000"), "int", summed=True)
NUMERIC = Type(
    "numeric",
    ("0", "1", "1.0", "1.00", "-2.5", "NaN", "Infinity", "-Infinity", "0.3333333333333333333333", "1e20", "-1"),
    "numeric",
    summed=True,
    ambiguous=True,
)
# Without NaN and infinities, which swallow what else is summed.
FINITE = Type(
    "numeric",
    ("0", "1", "1.0", "1.000", "-2.5", "0.125", "-1", "12345678901234567890.5"),
    "numeric",
    summed=True,
    ambiguous=True,
)
MONEY = Type("numeric(10,2)", ("0", "1", "1.50", "-2.25", "99.99", "NaN"), "numeric", summed=True, ambiguous=True)
TEXT = Type("text", ("", "a", "A", "b c", "\\.", "x\ny", 'q"u,o', "é", "NULL", "\\N", "a\x1eb"), "text")
VARCHAR = Type("character varying(6)", ("", "a", "A", "ab"), "text")
DATE = Type("date", ("2024-02-29", "2024-03-01", "infinity", "-infinity", "0044-03-15 BC"), "date")
TIMESTAMPTZ = Type(
    "timestamp with time zone",
    ("2024-03-31 01:30:00+00", "2024-03-31 02:30:00.000001+02", "infinity", "-infinity", "2024-10-27 00:30:00+00"),
    "time",
)
TIMESTAMP = Type("timestamp without time zone", ("2024-03-31 02:30:00", "infinity", "2024-03-31 00:00:00"), "time")
BOOL = Type("boolean", ("true", "false"), "bool", ordered=False)
INTERVAL = Type(
    "interval", ("1 day", "24:00", "1 mon", "30 days", "-1 day", "0", "00:00:00.5"), summed=True, ambiguous=True
)
BYTEA = Type("bytea", ("\\x", "\\x00ff", "\\x5c2e"), ordered=False)
UUID = Type("uuid", ("00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), ordered=False)
CHAR = Type("character(3)", ("a", "a  ", "ab", "", "A"), ambiguous=True)
FLOAT = Type("double precision", ("0", "-0", "1.5", "NaN", "Infinity", "1e300", "0.1"), ambiguous=True)

ALL = (
    INT, SMALLINT, BIGINT, NUMERIC, FINITE, MONEY, TEXT, VARCHAR, DATE, TIMESTAMPTZ, TIMESTAMP, BOOL, INTERVAL, BYTEA,
    UUID, CHAR, FLOAT,
)  # fmt: skip
# What only the whole grammar uses: not all of it refreshes differentially under the core grammar.
INTS = Type("integer[]", ("{}", "{1}", "{1,2}", "{2,NULL,1}", "{7,7}"), "ints")
ENUM = Type("mood", ("sad", "ok", "glad"), "enum")
DOMAIN = Type("amount", ("0", "1", "2"), "domain")
JSONB = Type("jsonb", ("1", "1.0", "null", '{"a": 1}', "[1, 2]", '"a"'), ordered=False, ambiguous=True)
RANGE = Type("int4range", ("empty", "[1,3)", "[1,2]", "(,1)", "[2,)"), ordered=False)
FOLDED = Type("text COLLATE nocase", ("a", "A", "b", "B", ""), "folded", ambiguous=True)
ENGLISH = Type('text COLLATE "en-x-icu"', ("a", "B", "b", "Ab", "ä", ""), "english")
TIME = Type("time without time zone", ("00:00:00", "24:00:00", "12:30:00.5"))
REAL = Type("real", ("0", "-0", "1.5", "NaN", "0.1", "-Infinity"), ambiguous=True)

WHOLE = (*ALL, INT, TEXT, INTS, INTS, ENUM, DOMAIN, JSONB, RANGE, FOLDED, ENGLISH, TIME, REAL)
PREAMBLE = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'glad')",
    "CREATE DOMAIN amount AS integer CHECK (VALUE BETWEEN -1000 AND 1000)",
    "CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
)
NAMES = ("id", "k", "action", "select", 'wei"rd', "Übung", "left", "a b", "pgt", "date", "user", "from")


def quote(name: str) -> str:
    """Quote an identifier."""
    return '"' + name.replace('"', '""') + '"'

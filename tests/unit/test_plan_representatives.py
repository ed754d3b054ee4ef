"""What an expression may do with one of several equal values."""

import pytest

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.query.representatives import is_representative
from pytrickle.plan.sql.dialect import parse_query

KEPT = {
    ("q", "x"): "numeric",
    ("q", "f"): "double precision",
    ("q", "i"): "interval",
    ("q", "j"): "jsonb",
    ("q", "c"): "public.citext",
    ("q", "t"): "text COLLATE public.nocase",
    ("q", "v"): "character varying COLLATE public.nocase",
}
PASSED = (
    "q.x",
    "(abs(q.x) + 1) * 2 - (- q.x) % 2",
    "round(q.x, 2)",
    "q.x::double precision",
    "(q.j)::numeric",
    "COALESCE(q.i, '1 day'::interval)",
    "CASE WHEN q.x > 1 THEN q.c ELSE NULL END",
    "NULLIF(q.t, 'a' COLLATE public.nocase)",
    "(q.v)::text",
    "q.f / 2",
    "ROW(q.x, q.i)",
)
SETTLED = (
    "q.n + 1",
    "(q.x = 1)::text || length(q.other::text)",
    "q.x = ANY (ARRAY[1, 2]) AND NOT q.i <> '1 mon'",
    "q.t = 'a'",
    "q.t < ('a' COLLATE public.nocase)",
    "q.c OPERATOR(public.=) 'a'::public.citext",
    "(q.x IS NULL) OR q.x BETWEEN 1 AND 2",
    "ROW(q.x, q.n) = ROW(1, 2)",
    "num_nonnulls(q.x) + 1",
)
TELLING = (
    "q.x::text",
    "length((q.x + 1)::text)",
    "scale(q.x) = 0",
    "q.x / 3",
    "q.i + '2024-01-31'::date",
    "EXTRACT(epoch FROM q.i)",
    "(q.j ->> 'a') = '1'",
    "q.j - 'a'",
    "(q.c)::text = 'a'",
    "q.c OPERATOR(other.=) 'a'::public.citext",
    "q.t = ('a' COLLATE \"C\")",
    "NULLIF(q.t, 'a' COLLATE \"C\")",
    "(q.v)::character varying(1)",
    "q.t ~~ 'a%'",
    "public.abs(q.x)",
    "(SELECT q.x)",
    "ROW(q.x)::text",
    "ARRAY[q.x]::text",
)


@pytest.mark.parametrize("written", PASSED)
def test_equal_values_in_give_equal_values_out(written: str) -> None:
    assert is_representative(parse_query(f"SELECT {written} FROM q").selects[0], KEPT)


@pytest.mark.parametrize("written", SETTLED)
def test_what_only_compares_is_the_same_for_equal_values(written: str) -> None:
    assert not is_representative(parse_query(f"SELECT {written} FROM q").selects[0], KEPT)


@pytest.mark.parametrize("written", TELLING)
def test_what_may_tell_equal_values_apart_has_no_delta(written: str) -> None:
    with pytest.raises(NotDifferentiable, match="may look different"):
        is_representative(parse_query(f"SELECT {written} FROM q").selects[0], KEPT)

"""Expressions above groups and windows: what becomes a key, a call or an argument, and how ties are settled."""

import pytest
from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.query.block import own_column
from pytrickle.plan.query.group_keys import GroupKeys
from pytrickle.plan.query.grouping import Grouping, IncrementalCalls, WrittenCalls
from pytrickle.plan.query.nested_grouping import GROUP
from pytrickle.plan.query.tie_breaking import settle_call, settle_window, sort_of
from pytrickle.plan.query.windows import AboveWindows
from pytrickle.plan.sql.dialect import parse_query, render

AGGREGATES = frozenset({"count", "sum", "max", "string_agg", "array_agg", "percentile_cont", "median"})
NAMES = {"t": {name: own_column("t1", name) for name in "abc"}}


def items(listed: str, rest: str = "") -> list[exp.Expr]:
    return [each.unalias() for each in parse_query(f"SELECT {listed} FROM t {rest}").selects]


def grouped(*keys: str, simple: bool = True) -> Grouping[WrittenCalls]:
    group_keys = GroupKeys(GROUP, [items(key)[0].unnest() for key in keys], simple)
    return Grouping(group_keys, WrittenCalls(), AGGREGATES, NAMES)


def lifted(lift: Grouping[WrittenCalls] | Grouping[IncrementalCalls] | AboveWindows, *texts: str) -> list[str]:
    return [
        render(lift.lift(items(text)[0])).replace('"\x00group".', "g.").replace('"\x00window".', "w.") for text in texts
    ]


def test_keys_and_calls_become_columns() -> None:
    lift = grouped("t.a", "t.b + 1")
    texts = ("t.a", "(t.b + 1) * 2", "count(*)", "sum(t.c) / count(*)", "t.a || max(t.c)")
    assert lifted(lift, *texts) == ['g."k0"', 'g."k1" * 2', 'g."c0"', 'g."c1" / g."c0"', 'g."k0" || g."c2"']
    assert list(lift.calls.by_text) == ["COUNT(*)", 'SUM("d"."a0")', 'MAX("d"."a0")']
    assert [render(each) for each in lift.calls.arguments.resolved(NAMES, {})] == ['"t1"."c"']


def test_a_call_keeps_its_filter_and_its_order() -> None:
    lift = grouped("t.a")
    lifted(lift, "count(*) FILTER (WHERE t.b > 1)", "count(*)", "string_agg(t.b, ',' ORDER BY t.c)")
    lifted(lift, "percentile_cont(0.5) WITHIN GROUP (ORDER BY t.b)")
    assert len(lift.calls.nodes) == 4


def test_calls_at_the_top_are_of_one_argument_into_which_their_filter_is_folded() -> None:
    lift = Grouping(GroupKeys("g", [], False), IncrementalCalls(), AGGREGATES)
    texts = ("count(*)", "sum(t.c) / count(*)", "sum(t.c) FILTER (WHERE t.b > 1)", "count(t.c)")
    assert lifted(lift, *texts) == ['"g"."c0"', '"g"."c1" / "g"."c0"', '"g"."c2"', '"g"."c3"']
    assert [(call.function, call.argument) for call in lift.calls.listed] == [
        ("count", None), ("sum", "a0"), ("sum", "a1"), ("count", "a2"),
    ]  # fmt: skip
    assert [render(each) for each in lift.calls.arguments] == [
        '"t"."c"',
        'CASE WHEN ("t"."b" > 1) THEN "t"."c" END',
        'CASE WHEN (num_nonnulls("t"."c") = 1) THEN 1 END',
    ]


def test_grouping_has_a_bit_for_every_key_that_a_grouping_set_lacks() -> None:
    lift = grouped("t.a", "t.b", simple=False)
    asked = ("t.b", "grouping(t.a, t.b)", "grouping(t.b)", "grouping(t.b, t.a)", "1 + grouping(t.b)")
    assert lifted(lift, *asked) == ['g."k1"', 'g."b0"', 'g."b1"', 'g."b2"', '1 + g."b1"']
    alone, a, b = frozenset(), *(each.unnest() for each in items("t.a, t.b"))
    bits = [{name: render(bit) for name, bit in lift.bits_of(frozenset(keys)).items()} for keys in (alone, {a}, {a, b})]
    assert bits == [{"b0": "3", "b1": "1", "b2": "3"}, {"b0": "1", "b1": "1", "b2": "2"}, dict.fromkeys(bits[2], "0")]


def test_a_column_that_depends_on_a_key_becomes_one() -> None:
    lift = grouped("t.a")
    assert lifted(lift, "t.b") == ['g."k1"']
    with pytest.raises(NotDifferentiable):
        lifted(grouped("t.a", simple=False), "t.b")


def test_the_column_of_an_outer_query_is_left_alone() -> None:
    assert lifted(grouped("t.a"), "o.x") == ['"o"."x"']


@pytest.mark.parametrize("text", ["string_agg(t.b, ',')", "array_agg(t.b)", "median(t.b)", "sum((SELECT 1))"])
def test_calls_whose_result_the_rows_do_not_settle_are_refused(text: str) -> None:
    with pytest.raises(NotDifferentiable):
        lifted(grouped("t.a"), text)


def test_windows_become_columns_over_their_arguments() -> None:
    lift = AboveWindows({})
    text = "rank() OVER (PARTITION BY t.a, t.b ORDER BY t.c) + t.b"
    assert lifted(lift, text) == ['w."w0" + w."a1"']
    lifted(lift, "count(*) OVER (PARTITION BY t.b)")
    assert [render(key) for key in lift.common_keys()] == ['"t"."b"']


def test_named_windows_are_spelled_out() -> None:
    query = parse_query("SELECT rank() OVER w AS r FROM t WINDOW w AS (PARTITION BY t.a ORDER BY t.b)")
    lift = AboveWindows({each.name: each for each in query.args["windows"]})
    lift.lift(query.selects[0].unalias())
    assert list(lift.windows) == ['rank() OVER (PARTITION BY "d"."a0" ORDER BY "d"."a1")']


CONTENT = 'CAST(ROW(a0, a1) AS text) COLLATE "C"'


@pytest.mark.parametrize(
    ("text", "settled"),
    [
        ("array_agg(t.a ORDER BY t.b)", f'array_agg("t"."a" ORDER BY "t"."b", {CONTENT})'),
        ("array_agg(t.a ORDER BY t.b) FILTER (WHERE t.c)", f'array_agg("t"."a" ORDER BY "t"."b", {CONTENT}) FILTER'),
        ("array_agg(DISTINCT t.a ORDER BY t.a)", 'array_agg(DISTINCT "t"."a" ORDER BY "t"."a")'),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY t.b)", 'WITHIN GROUP (ORDER BY "t"."b")'),
        ("sum(t.a)", 'SUM("t"."a")'),
    ],
)
def test_an_order_within_a_call_is_made_total(text: str, settled: str) -> None:
    assert settled in render(settle_call(items(text)[0], ("a0", "a1")))


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("row_number() OVER (PARTITION BY t.a)", True),
        ("lag(t.a) OVER (ORDER BY t.b)", True),
        ("first_value(t.a) OVER (ORDER BY t.b)", True),
        ("sum(t.a) OVER (ORDER BY t.b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", True),
        ("sum(t.a) OVER (ORDER BY t.b)", False),
        ("rank() OVER (ORDER BY t.b)", False),
        ("last_value(t.a) OVER (ORDER BY t.b)", False),
        ("sum(t.a) OVER (ORDER BY t.b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW)", True),
    ],
)
def test_windows_that_tell_peers_apart_get_a_total_order(text: str, changed: bool) -> None:
    settled = render(settle_window(items(text)[0], ("a0", "a1"), sorted_once=True))
    assert (CONTENT in settled) is changed


@pytest.mark.parametrize(
    "text",
    [
        "last_value(t.a) OVER (ORDER BY t.b)",
        "nth_value(t.a, 2) OVER (PARTITION BY t.a)",
        "array_agg(t.a) OVER (ORDER BY t.b)",
        "last_value(t.a) OVER (ORDER BY t.b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES)",
    ],
)
def test_windows_whose_peers_matter_need_rows_that_come_in_order(text: str) -> None:
    window = items(text)[0]
    settle_window(window, ("a0",), sorted_once=True)
    with pytest.raises(NotDifferentiable, match="rows that may tie"):
        settle_window(window, ("a0",), sorted_once=False)


def test_windows_are_sorted_once_if_partition_and_order_agree() -> None:
    windows = items("rank() OVER (PARTITION BY t.a ORDER BY t.b), lag(t.c) OVER (PARTITION BY t.a ORDER BY t.b)")
    other = items("rank() OVER (PARTITION BY t.a ORDER BY t.b DESC)")[0]
    assert isinstance(other, exp.Window)
    found = {sort_of(each) for each in windows if isinstance(each, exp.Window)}
    assert len(found) == 1 and sort_of(other) not in found

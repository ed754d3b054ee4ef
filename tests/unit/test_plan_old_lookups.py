"""Tables whose few changes are taken back: which of them a term looks up as they were, and which are multiplied out."""

from collections.abc import Collection
from dataclasses import replace

import pytest

from pytrickle.catalog.definition import ChangeRange, Definition
from pytrickle.plan.algebra.delta import at, differentiate, unfold, unfold_all
from pytrickle.plan.algebra.relation import Join, Project, Relation, Scan, Version, leaves
from pytrickle.plan.postgres.compile import Compiler
from pytrickle.plan.postgres.old_lookups import MOST_CHANGES, MOST_TAKEN_BACK, folding, old_lookups, without
from tests.unit.chain import CHAIN, chain, definition, equal

EVERYTHING = frozenset({1, 2, 3, 4})


def keyed(*keys: Collection[str], tables: str = CHAIN) -> Definition:
    """The four tables, some of them with unique keys."""
    found, unique = definition(), frozenset(map(frozenset, keys))
    sources = (replace(each, unique=unique if each.name in tables else frozenset()) for each in found.sources)
    return replace(found, sources=tuple(sources))


def ranges(**counts: int) -> dict[int, ChangeRange]:
    """As many changes of each table; of the others one each."""
    return {relid: ChangeRange(relid, None, None, counts.get(name, 1)) for relid, name in enumerate(CHAIN, 1)}


def folded(block: Project, facts: Definition, known: dict[int, ChangeRange]) -> list[set[str]]:
    """Return the tables that each term looks up as they were; term i takes in the changes of table i."""
    fold, terms = folding(facts, known), differentiate(block, EVERYTHING)
    return [set(fold(term.input)) for term in terms if isinstance(term, Project) and isinstance(term.input, Join)]


def versions(part: Relation) -> list[str]:
    return [leaf.version.value for leaf in leaves(part) if isinstance(leaf, Scan)]


# a.j = b.k and so on. The change of d leads to a row of c by c.j, and so on to the left.
def test_a_table_is_looked_up_where_a_unique_key_leads_to_it() -> None:
    assert folded(chain(), keyed("j"), ranges()) == [set(), {"a"}, {"a", "b"}, {"a", "b", "c"}]
    assert folded(chain(), keyed("j", tables="c"), ranges()) == [set(), set(), set(), {"c"}]


def test_not_where_another_column_leads_to_it() -> None:
    assert folded(chain(), keyed("k"), ranges()) == [set()] * 4
    assert folded(chain(), keyed(), ranges()) == [set()] * 4


def test_all_columns_of_the_key_must_be_equated() -> None:
    assert folded(chain(), keyed("jx"), ranges()) == [set()] * 4
    links = [equal((one, column), (other, column)) for one, other in ("ab", "bc", "cd") for column in "jx"]
    assert folded(chain(*links), keyed("jx"), ranges())[3] == {"a", "b", "c"}


def test_a_table_through_which_others_are_reached_is_multiplied_out() -> None:
    # The change of c leads to a by its key only once b is known, and b is not found by its key.
    links = (equal(("c", "x"), ("b", "x")), equal(("b", "k"), ("a", "j")), equal(("c", "j"), ("d", "j")))
    assert folded(chain(*links), keyed("j"), ranges())[2] == {"a"}
    # Nothing but the key of a leads to a, and nothing to d's row but a itself.
    links = (equal(("a", "x"), ("d", "x")), equal(("b", "k"), ("a", "j")), equal(("c", "j"), ("b", "j")))
    assert "a" not in folded(chain(*links), keyed("j", tables="a"), ranges())[3]


@pytest.mark.parametrize("few", [True, False])
def test_where_few_changes_are_taken_back(few: bool) -> None:
    known = ranges(a=MOST_TAKEN_BACK + (not few))
    assert folded(chain(), keyed("j"), known)[1] == ({"a"} if few else set())


@pytest.mark.parametrize("few", [True, False])
def test_where_there_are_not_very_many_changes_together(few: bool) -> None:
    known = ranges(d=MOST_CHANGES - 3 + (not few))
    assert folded(chain(), keyed("j"), known)[3] == ({"a", "b", "c"} if few else set())


def test_the_last_of_four_terms_has_one_part_instead_of_eight() -> None:
    last, known = differentiate(chain(), EVERYTHING)[3], ranges()
    assert len(unfold_all((last,), known)) == 8
    (part,) = unfold_all((last,), known, fold=folding(keyed("j"), known))
    assert versions(part) == ["old", "old", "old", "delta"]


def test_what_is_asked_of_a_lookup_is_not_asked_again() -> None:
    last, known = differentiate(chain(), EVERYTHING)[3], ranges()
    (part,) = unfold_all((last,), known, fold=folding(keyed("j"), known))
    assert isinstance(part, Project) and isinstance(part.input, Join)
    lookups = old_lookups(part.input, keyed("j"))
    # Each is found by the one before: c by the change of d, then b, then a.
    assert list(lookups) == ["c", "b", "a"]
    assert not without(part.input, lookups).predicates
    text = Compiler(keyed("j"), known).rows(part)
    assert text.count("LATERAL") == text.count("UNION ALL") == text.count("OFFSET 0") == 3 and text.count("...") == 3


def test_without_a_key_nothing_is_left_out() -> None:
    (part,) = unfold(at(chain(), Version.CURRENT), frozenset(), frozenset())
    assert isinstance(part, Project) and isinstance(part.input, Join)
    assert old_lookups(part.input, keyed("j")) == {} and without(part.input, {}) == part.input

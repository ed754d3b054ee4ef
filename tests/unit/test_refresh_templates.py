"""Of one stream table so many templates are kept, those that were used last."""

from dataclasses import replace
from typing import cast

import pytest

from pytrickle.catalog.definition import size_class
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.limits import Limits
from pytrickle.plan.template import Kind, Outline
from pytrickle.refresh import templates
from pytrickle.refresh.templates import OfOne

OUTLINE = Outline((), (), True, True, False, Limits(0, 0), None, False)


def test_the_template_that_is_unused_for_the_longest_time_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "MOST_TEMPLATES", 3)
    kept, made = OfOne(cast(Analysis, None)), []

    def use(number: int) -> None:
        kept.template(replace(OUTLINE, limits=Limits(number, 0)), (), lambda: made.append(number))

    for number in (1, 2, 3, 1, 4, 1, 3, 4):
        use(number)
    assert made == [1, 2, 3, 4] and len(kept.by_outline) == 3
    use(2)
    assert made == [1, 2, 3, 4, 2] and len(kept.by_outline) == 3


def test_one_template_serves_for_numbers_of_changes_that_vary() -> None:
    kept, made = OfOne(cast(Analysis, None)), []
    kinds = tuple(Kind(relid, True, True, True, False, False, True) for relid in (1, 2))

    def use(few: bool, *counts: int) -> None:
        ranks = {count: rank for rank, count in enumerate(sorted(map(size_class, counts)))}
        outline = replace(OUTLINE, ranges=kinds, few=few, ranks=tuple(ranks[size_class(count)] for count in counts))
        kept.template(outline, counts, lambda: made.append(counts))

    # Two of about a size, in either order, and one after another that has hardly any.
    for counts in ((15, 17), (17, 15), (120, 15), (32, 1), (2, 100)):
        use(True, *counts)
    assert made == [(15, 17)]
    use(True, 121, 15)
    use(False, 15, 17)
    assert made == [(15, 17), (121, 15), (15, 17)]
    use(True, 500, 2)
    assert len(made) == 3


def test_a_template_takes_in_changes_of_a_source_that_has_none() -> None:
    mine = Kind(1, old=True, new=True, changed=True, future=False, netted=False, few=True)
    none = mine._replace(changed=False, netted=True, few=False)
    assert mine.takes_in(none) and not none.takes_in(mine)
    assert not mine.takes_in(mine._replace(few=False)) and not mine.takes_in(none._replace(new=False))

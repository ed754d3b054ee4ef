"""Of one stream table so many templates are kept, those that were used last."""

from dataclasses import replace
from typing import cast

import pytest

from pytrickle.plan.analysis import Analysis
from pytrickle.plan.limits import Limits
from pytrickle.plan.template import Outline
from pytrickle.refresh import templates
from pytrickle.refresh.templates import OfOne

OUTLINE = Outline((), True, True, False, Limits(0, 0), None)


def test_the_template_that_is_unused_for_the_longest_time_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "MOST_TEMPLATES", 3)
    kept, made = OfOne(cast(Analysis, None)), []

    def use(number: int) -> None:
        kept.template(replace(OUTLINE, limits=Limits(number, 0)), lambda: made.append(number))

    for number in (1, 2, 3, 1, 4, 1, 3, 4):
        use(number)
    assert made == [1, 2, 3, 4] and len(kept.by_outline) == 3
    use(2)
    assert made == [1, 2, 3, 4, 2] and len(kept.by_outline) == 3

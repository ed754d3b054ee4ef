"""What a refusal says to do can be copied as it stands."""

from types import SimpleNamespace
from typing import Any

import pytest

from pytrickle.errors import WouldRecompute
from pytrickle.plan.apply_plan import Action
from pytrickle.refresh.guards import refuse_recomputing


@pytest.mark.parametrize(
    ("name", "shell", "call"),
    [
        ("public.daily", "pytrickle refresh public.daily --full", "('public.daily')"),
        ('public."My Days"', "pytrickle refresh 'public.\"My Days\"' --full", "('public.\"My Days\"')"),
        ('public."o\'clock"', "refresh 'public.\"o'\"'\"'clock\"' --full", "('public.\"o''clock\"')"),
    ],
)
def test_names_in_a_hint_are_written_for_the_shell_and_for_sql(name: str, shell: str, call: str) -> None:
    table: Any = SimpleNamespace(name=name, strict=True, populated=True, recomputation_asked=False)
    with pytest.raises(WouldRecompute) as failure:
        refuse_recomputing(table, Action.FULL, "so it is")
    assert shell in str(failure.value.hint)
    assert f"reinitialize_stream_table{call}" in str(failure.value.hint)

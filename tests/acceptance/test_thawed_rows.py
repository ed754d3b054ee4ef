"""Rows that a wrong watermark had frozen may change again once it is taken back; those that were frozen rightly not."""

from __future__ import annotations

from tests.acceptance.conftest import Shop, status
from tests.acceptance.events import advance, moment
from tests.acceptance.test_changed_meanwhile import again
from tests.acceptance.test_frozen_rows import LATE, add, numbers, plain

__all__ = ["again", "plain"]


def test_rows_that_a_withdrawn_watermark_had_frozen_change_again(plain: Shop) -> None:
    add(plain, 3, 200)
    add(plain, 4, 4900)
    advance(plain, 5000)
    for _ in range(2):
        plain.tick()
        advance(plain, 5001)
    plain.tick()
    add(plain, 5, 450)
    plain.tick()
    assert {number for _, number, _ in plain.db.execute(LATE)} == {"3", "5"}
    plain.db.execute("SELECT pgtrickle.reset_watermark('clicks', %s::timestamptz)", moment(350))
    assert status(plain, "plain").frozen_before == moment(250)
    plain.tick()
    add(plain, 6, 500)
    plain.tick()
    assert numbers(plain) == {1, 2, 4, 5, 6}
    assert {number for _, number, _ in plain.db.execute(LATE)} == {"3"}
    assert plain.pt.verify("plain").matches

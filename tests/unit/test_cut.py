"""Cuts: what the database wrote is read, and what is written means the same to the database."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytrickle.cut import Cut
from pytrickle.errors import CatalogError

_XIDS = st.integers(3, 2**63 - 1)


@st.composite
def cuts(draw: st.DrawFn) -> Cut:
    xmin, running, xmax = (lambda three: (three[0], three[1:-1], three[-1]))(
        sorted(draw(st.lists(_XIDS, min_size=2, max_size=6, unique=True)))
    )
    lsn = draw(st.none() | st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)))
    return Cut(
        f"{xmin}:{xmax}:{','.join(map(str, running))}",
        draw(st.none() | _XIDS.map(str)),
        draw(st.none() | st.integers(-(2**63), 2**63 - 1)),
        None if lsn is None else f"{lsn[0]:X}/{lsn[1]:X}",
    )


@given(cuts())
def test_json_brings_a_cut_back(cut: Cut) -> None:
    assert Cut.from_json(cut.to_json()) == cut


def test_json_of_the_database_is_read() -> None:
    written = {"snapshot": "10:12:11", "xid": "11", "pos": 7, "lsn": "0/16B3748"}
    assert Cut.from_json(written) == Cut("10:12:11", "11", 7, "0/16B3748")
    assert Cut.from_json({"snapshot": "10:10:", "xid": None, "pos": None, "lsn": None}) == Cut(
        "10:10:", None, None, None
    )


def test_xmin_is_the_lowest_transaction_that_may_be_uncovered() -> None:
    assert Cut("10:12:11", "11", 7, None).xmin == 10


@pytest.mark.parametrize(
    "fields",
    [
        ("", None, None, None),
        ("10:12", None, None, None),
        ("10:12:11,", None, None, None),
        ("10:12:'", None, None, None),
        ("10:12:11\n", None, None, None),
        ("10:12:", "1'1", None, None),
        ("10:12:", "", None, None),
        ("10:12:", None, "7", None),
        ("10:12:", None, True, None),
        ("10:12:", None, None, "0/16B3748'"),
    ],
    ids=str,
)
def test_malformed_cut_is_refused(fields: tuple[object, ...]) -> None:
    with pytest.raises(CatalogError):
        Cut(*fields)  # type: ignore[arg-type]

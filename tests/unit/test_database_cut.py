"""The literal of a cut means the cut, to PostgreSQL."""

import pytest

from pytrickle.cut import Cut
from tests.conftest import Database


@pytest.mark.parametrize(
    "cut",
    [
        Cut("10:12:11", "11", 7, "0/16B3748"),
        Cut("10:10:", None, None, None),
        Cut("10:13:10,12", "18446744073709551615", -(2**63), "FFFFFFFF/0"),
    ],
    ids=str,
)
def test_literal_is_read_back_unchanged(every_db: Database, cut: Cut) -> None:
    rows = every_db.execute(
        f"SELECT c.snapshot::text, c.xid::text, c.pos, c.lsn::text FROM (SELECT ({cut.literal()}).*) c"
    )
    assert [Cut(*row) for row in rows] == [cut]
    assert Cut.from_json(every_db.value(f"SELECT to_jsonb({cut.literal()})")) == cut

"""A cut means the same in SQL and in Python."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytrickle.cut import Cut
from tests.conftest import Database

XIDS = range(1, 16)


@st.composite
def cuts(draw: st.DrawFn) -> Cut:
    """Draw a snapshot with some transactions under way, and perhaps one's own transaction with a position."""
    low = draw(st.integers(1, 12))
    high = draw(st.integers(low, 14))
    running = sorted(draw(st.sets(st.integers(low, high - 1)))) if high > low else []
    low = running[0] if running else high
    xid = draw(st.none() | st.sampled_from(XIDS))
    position = draw(st.integers(-1, 4))
    return Cut(
        f"{low}:{high}:{','.join(map(str, running))}",
        None if xid is None else str(xid),
        position if xid else None,
        None,
    )


def test_covered_and_beyond_are_what_covers_says(db: Database) -> None:
    with db.connect() as connection:
        connection.execute(
            "CREATE TEMP TABLE changes AS SELECT x::text::xid8 AS pgt_xid, p AS pgt_pos"
            " FROM generate_series(1, 15) AS x, generate_series(-1, 4) AS p"
        )

        @settings(max_examples=300, suppress_health_check=list(HealthCheck))
        @given(cuts())
        def check(cut: Cut) -> None:
            covers = f"pgtrickle.covers({cut.literal()}, pgt_xid, pgt_pos)"
            text = f"SELECT {cut.covered()}, {cut.beyond()}, {covers} FROM changes"
            rows = connection.execute(text.encode()).fetchall()
            assert all(covered is covers and beyond is not covers for covered, beyond, covers in rows), cut

        check()

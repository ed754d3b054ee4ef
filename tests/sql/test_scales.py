"""Histograms of scales: the case of a single scale, which is written out, answers as the functions do for any."""

from pytrickle.plan.postgres.scales import added_scales, first_scales, widest_scale
from tests.conftest import Database

# A state is what add_scales returns. An increment may name a scale twice, and have counts of zero and below.
STATES = (None, "[[2, 5]]", "[[0, 1]]", "[[0, 3], [2, 5]]", "[[16383, 1]]")
INCREMENTS = (
    None, "[]", "[[2, 1]]", "[[2, -5]]", "[[2, 0]]", "[[0, -1]]", "[[2, 4], [2, -4]]", "[[3, 1], [2, -5]]",
    "[[2, 1], [2, 1]]",
)  # fmt: skip


def test_the_case_of_one_scale_is_no_other_answer(db: Database) -> None:
    pairs = {
        added_scales("s.h", "i.h"): "add_scales(s.h, i.h)",
        first_scales("i.h"): "add_scales(NULL, i.h)",
        widest_scale("s.h"): "max_scale(s.h)",
    }
    same = (f"count(*) FILTER (WHERE {one} IS NOT DISTINCT FROM pgtrickle_private.{two})" for one, two in pairs.items())
    asked = f"""
    SELECT count(*), {", ".join(same)}
    FROM unnest(CAST(%s AS jsonb[])) AS s (h) CROSS JOIN unnest(CAST(%s AS jsonb[])) AS i (h)
    """
    with db.connect() as connection:
        found = connection.execute(asked.encode(), (list(STATES), list(INCREMENTS))).fetchone()
    assert found == (len(STATES) * len(INCREMENTS),) * 4

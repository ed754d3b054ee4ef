"""How much is measured: the full benchmark, and a small one that only shows that it runs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """Row counts of one benchmark; `rounds` maps a number of changed rows to how often its refresh is repeated."""

    name: str
    customers: int
    regions: int
    orders: int
    fewer_orders: int
    warm_up_refreshes: int
    rounds: dict[int, int]
    compared_changes: int
    compared_rounds: int
    full_rounds: int
    copied_rows: int
    copy_rounds: int
    single_inserts: int
    shared_buffers: str


FULL = Scale(
    name="full",
    customers=100_000,
    regions=250,
    orders=5_000_000,
    fewer_orders=500_000,
    warm_up_refreshes=60,
    rounds={100: 7, 5_000: 7, 50_000: 5, 500_000: 3},
    compared_changes=5_000,
    compared_rounds=7,
    full_rounds=3,
    copied_rows=500_000,
    copy_rounds=5,
    single_inserts=20_000,
    shared_buffers="2GB",
)

SMALL = Scale(
    name="small",
    customers=2_000,
    regions=50,
    orders=50_000,
    fewer_orders=5_000,
    warm_up_refreshes=2,
    rounds={100: 2, 1_000: 2},
    compared_changes=1_000,
    compared_rounds=2,
    full_rounds=1,
    copied_rows=10_000,
    copy_rounds=2,
    single_inserts=1_000,
    shared_buffers="256MB",
)

SCALES = {scale.name: scale for scale in (FULL, SMALL)}

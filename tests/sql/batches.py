"""What the tests of watermarks that count batches share."""

from datetime import UTC, datetime

from tests.conftest import Database

LATEST = 2**63 - 1
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def advance(db: Database, **watermarks: object) -> None:
    for source, watermark in watermarks.items():
        call = "advance_batch" if isinstance(watermark, int) else "advance_watermark"
        db.execute(f"SELECT pgtrickle.{call}(%s, %s)", source, watermark)

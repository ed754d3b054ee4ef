"""What loaders of the SQL tests do, and how the tests move the clock: by editing what the catalog remembers."""

from tests.conftest import Database

QUERY = "SELECT o.id FROM orders AS o JOIN lines AS l USING (id)"


def advance(db: Database, **watermarks: str) -> None:
    """Advance sources to clock readings of the one day that the tests know."""
    for source, at in watermarks.items():
        event_time = at if at == "infinity" else f"2026-03-01 {at}+00"
        db.execute("SELECT pgtrickle.advance_watermark(%s, %s)", source, event_time)


def age(db: Database, source: str, interval: str) -> None:
    """Let the loader of a source be silent for longer."""
    db.execute(
        "UPDATE pgtrickle.pgt_watermarks SET last_seen_at = last_seen_at - %s::interval, "
        "marked_idle_at = marked_idle_at - %s::interval WHERE source_relid = %s::regclass",
        *(interval, interval, source),
    )


def pipeline(db: Database, **options: object) -> Database:
    """Two tables in a group without tolerance; options are those of the group."""
    for name in ("orders", "lines", "rates"):
        db.execute(f"CREATE TABLE {name} (id integer)")
    given = "".join(f", {name} => %s" for name in options)
    db.execute(
        f"SELECT pgtrickle.create_watermark_group('pipeline', ARRAY['orders', 'lines']{given})", *options.values()
    )
    return db

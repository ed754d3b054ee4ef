"""A catalog that pg_restore has not written completely yet: nothing is done with it until that is so."""

import psycopg

from pytrickle.errors import NotInstalled, RestoreUnderWay

# The keys that pg_restore writes last, after the rows and triggers of all schemas; every version of the catalog has
# them.
_MISSING = """
SELECT format('the schema %I', s.name)
FROM unnest(ARRAY['pgtrickle_changes', 'pgtrickle_private', 'pgtrickle_state']) AS s (name)
WHERE to_regnamespace(s.name) IS NULL AND EXISTS (SELECT FROM pgtrickle.pgt_schema_version AS v WHERE v.version >= 17)
UNION ALL
SELECT format('the key %I of pgtrickle.%I', k.name, k.relation)
FROM (VALUES ('pgt_schema_version', 'pgt_schema_version_pkey'), ('pgt_dependencies', 'pgt_dependencies_pgt_id_fkey'),
    ('pgt_refresh_history', 'pgt_refresh_history_pgt_id_fkey'),
    ('pgt_refresh_requests', 'pgt_refresh_requests_pgt_id_fkey')) AS k (relation, name)
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_constraint AS c
    WHERE c.conname = k.name AND c.conrelid = to_regclass('pgtrickle.' || k.relation))
LIMIT 1
"""
# Its rows may be on their way.
_COPYING = """
SELECT format('the subscription %I copies it from another server', s.subname)
FROM pg_catalog.pg_subscription_rel AS r JOIN pg_catalog.pg_subscription AS s ON s.oid = r.srsubid
WHERE r.srrelid = to_regclass('pgtrickle.pgt_schema_version')
"""
_HINT = (
    "It goes on by itself once the restore is done. If the restore has ended, correct what it failed at and repeat it,"
    " its section post-data included."
)


def refuse_begun(connection: psycopg.Connection) -> None:
    """Raise RestoreUnderWay where there is a schema for a catalog, but not yet the table that tells its version.

    An install makes both in one transaction; pg_restore comes to that table late.
    """
    if connection.execute("SELECT to_regnamespace('pgtrickle')").fetchone() != (None,):
        raise RestoreUnderWay(
            "The database is not restored completely yet: it lacks the table pgtrickle.pgt_schema_version.",
            f"{_HINT} If nothing was restored, drop the schemas whose names begin with pgtrickle: they are in the way.",
        )


def refuse_half_restored(connection: psycopg.Connection, *, has_rows: bool) -> None:
    """Raise RestoreUnderWay where the catalog lacks something still, NotInstalled where it lacks its rows alone."""
    if missing := connection.execute(_MISSING).fetchone():
        raise RestoreUnderWay(f"The database is not restored completely yet: it lacks {missing[0]}.", _HINT)
    if not has_rows and (copying := connection.execute(_COPYING).fetchone()):
        raise RestoreUnderWay(
            f"The database is not restored completely yet: {copying[0]}.",
            "Its rows arrive by themselves. Look into pg_stat_subscription and the server's log where they do not.",
        )
    if not has_rows:
        raise NotInstalled(
            "The pytrickle catalog of this database was restored without its rows, as pg_dump --schema-only writes it.",
            "Restore its rows, too; or run pytrickle uninstall, which leaves stream tables behind as plain tables, then"
            " pytrickle install.",
        )

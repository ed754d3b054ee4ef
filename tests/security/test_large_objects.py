"""A defining query neither reads nor writes large objects, whose rights no view carries."""

import pytest

from tests.security.attempts import catalog, stopped
from tests.security.roles import House

QUERIES = {
    "read": "SELECT id, lo_get({number}) AS data FROM orders",
    "written": "SELECT id, CAST(lo_put({number}, 0, 'x') AS text) AS done FROM orders",
    "created": "SELECT id, lo_create(0) AS made FROM orders",
    "dropped": "SELECT id, lo_unlink({number}) AS gone FROM orders",
    "opened": "SELECT id, loread(lo_open({number}, 262144), 10) AS data FROM orders",
    "written to a file": "SELECT id, lo_export({number}, '/tmp/pytrickle') AS done FROM orders",
    "read from a file": "SELECT id, lo_import('/etc/passwd') AS made FROM orders",
    "listed page by page": "SELECT loid, data FROM pg_largeobject",
}


@pytest.mark.parametrize("way", QUERIES)
def test_a_large_object_is_not_touched_by_a_query(home: House, way: str) -> None:
    number = home.db.value("SELECT lo_from_bytea(0, 'secret')")
    query, before = QUERIES[way].format(number=number), catalog(home.db)
    code = stopped(home.etl, "SELECT pgtrickle.create_stream_table('large', %s)", query)
    assert (code, catalog(home.db)) == ("42501" if "pg_largeobject" in query else "0A000", before)
    assert home.db.execute("SELECT convert_from(lo_get(l.oid), 'UTF8') FROM pg_largeobject_metadata AS l") == [
        ("secret",)
    ]

"""Names are shown as PostgreSQL itself would quote them."""

from pytrickle.sql_name import sql_name
from tests.conftest import Database
from tests.repeats import on_both_servers


@on_both_servers
def test_names_are_quoted_where_the_server_quotes_them(every_db: Database) -> None:
    names = [word for (word,) in every_db.execute("SELECT word FROM pg_get_keywords()")]
    names += ["orders", "My Shop", "Orders", 'a"b', "1st", "a$b", "straße", "_x", "x.y", "", "x\n"]
    quoted = every_db.execute("SELECT name, quote_ident(name) FROM unnest(%s::text[]) AS name", names)
    newer = {name for name, said in quoted if sql_name(name) != said}
    assert all(sql_name(name) == f'"{name}"' for name in newer), "what a newer version reserves is quoted as well"
    assert newer.isdisjoint(names[-11:])
    assert every_db.version < 18 or not newer

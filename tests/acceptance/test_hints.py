"""A hint works: each command and each function that an error names exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from pytrickle.cli import app
from pytrickle.cli.remedies import COMMANDS
from pytrickle.errors import DatabaseError
from tests.commands import commands
from tests.conftest import Database
from tests.documents import ROOT
from tests.equivalence.local_engine import local_client

TREE: Any = get_command(app)
# Words that follow the name of the project where that is no command.
OTHERS = "built builds can cannot catalog could failed go has import is itself must needs process raises"
WORDS = frozenset(OTHERS.split(" "))
NAMED = re.compile(r"\bpytrickle ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?")
CALLED = re.compile(r"\bpgtrickle\.([a-z_]+)\(")
TEXTS = (*(ROOT / "sql").rglob("*.sql"), *(ROOT / "pytrickle").rglob("*.py"))


def exists(first: str, second: str | None) -> bool:
    """Whether there is such a command; of a group of commands, the one that is named with it."""
    found = TREE.commands.get(first)
    below = getattr(found, "commands", None)
    return found is not None and (below is None or second in below)


def named(path: Path) -> Iterator[tuple[str, str | None]]:
    # A sentence may go on in the next line of the source.
    text = re.sub(r"['\"]\s*\n\s*(?:\|\| )?f?['\"]", "", path.read_text(encoding="utf-8"))
    yield from ((match[1], match[2]) for match in NAMED.finditer(text) if match[1] not in WORDS)


@pytest.mark.parametrize("top", ["sql", "pytrickle"])
def test_every_command_that_is_named_exists(top: str) -> None:
    found = {(path.name, *words) for path in TEXTS if path.is_relative_to(ROOT / top) for words in named(path)}
    assert len(found) > 5
    assert sorted(one for one in found if not exists(*one[1:])) == []


def test_every_function_that_is_named_exists_and_so_does_each_command_in_its_place(steady_db: Database) -> None:
    functions = "SELECT proname::text FROM pg_proc WHERE pronamespace IN ('pgtrickle'::regnamespace)"
    known = {name for (name,) in steady_db.execute(functions)}
    found = {
        name for path in TEXTS if "migrations" not in path.parts for name in CALLED.findall(path.read_text("utf-8"))
    }
    assert len(found) > 50
    assert sorted(found - known - {"cut"}) == [], "the doctest of what is no command names cut()"
    assert sorted(set(COMMANDS) - known) == []
    assert [words for words in COMMANDS.values() if not exists(*(*words.split(), None)[:2])] == []


def test_an_error_in_a_query_is_shown_where_it_is_and_nothing_of_how_that_was_found(steady_db: Database) -> None:
    run = commands(steady_db.dsn)
    for query, line, at in (
        ("SELECT sum(amount FROM t", "LINE 1: SELECT sum(amount FROM t", "FROM"),
        ("SELECT 1 AS a,\n  nothing FROM pg_class", "LINE 2:   nothing FROM pg_class", "nothing"),
    ):
        told = run("create", "bad", query).stderr.splitlines()
        assert told[1] == line and told[2] == " " * line.index(at) + "^", told
        assert not [word for word in ("CONTEXT", "CREATE VIEW", "pgtrickle_state") if word in "".join(told)]


def test_help_shows_no_words_of_libraries() -> None:
    def pages(command: Any, words: tuple[str, ...]) -> Iterator[str]:
        yield command.get_help(type(TREE).context_class(command, info_name=" ".join(words)))
        for name, below in getattr(command, "commands", {}).items():
            yield from pages(below, (*words, name))

    texts = list(pages(TREE, ("pytrickle",)))
    assert len(texts) > 50
    leaks = re.compile(r"\bAny\b|Value error|FUNC|Annotated|<function|<class")
    assert [found[0] for text in texts for found in leaks.finditer(text)] == []


def test_a_null_in_an_array_of_a_domain_without_nulls_is_cast_away(db: Database) -> None:
    """PostgreSQL shows it after an outer join; what is stored anew must be an array of the type below."""
    db.execute("CREATE DOMAIN price AS int NOT NULL")
    db.execute("CREATE TABLE items (id int PRIMARY KEY)")
    db.execute("CREATE TABLE prices (id int PRIMARY KEY, price price)")
    db.execute("INSERT INTO items VALUES (1), (2)")
    db.execute("INSERT INTO prices VALUES (1, 5)")
    query = "SELECT items.id, {prices} AS prices FROM items LEFT JOIN prices USING (id)"
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("refused", query.format(prices="ARRAY[prices.price]"))
        with pytest.raises(DatabaseError, match=r"domain public\.price does not allow null values") as failed:
            client.refresh("refused")
        assert "CAST(prices AS numeric[])" in str(failed.value.hint)
        client.drop_stream_table("refused")
        client.create_stream_table("priced", query.format(prices="CAST(ARRAY[prices.price] AS int[])"))
        for change in ("INSERT INTO items VALUES (3)", "DELETE FROM prices", "INSERT INTO prices VALUES (3, 7)"):
            client.tick()
            db.execute(change)
        assert client.refresh("priced").action == "DIFFERENTIAL"
        assert sorted(db.execute("SELECT * FROM priced")) == [(1, [None]), (2, [None]), (3, [7])]

"""What the owner of a source does to it is followed, noticed, or stops what reads it, and nothing else."""

from collections.abc import Iterator

import pytest

from pytrickle.client.client import Client
from tests.equivalence.local_engine import local_client
from tests.repeats import first
from tests.security.attempts import stopped
from tests.security.roles import House, Session

ITEMS = "CREATE TABLE mallory.items (id integer PRIMARY KEY, amount integer)"


class Shop:
    """A stream table of steward over a table of mallory, beside one over a table of steward's own."""

    def __init__(self, house: House, client: Client) -> None:
        self.house, self.client = house, client
        self.mallory = house.session("mallory")
        self.mallory.execute(ITEMS)
        self.mallory.execute("INSERT INTO mallory.items VALUES (1, 10), (2, 20)")
        # CREATE TRIGGER is for the owner of a table and his members.
        house.db.execute("GRANT mallory TO steward; GRANT USAGE ON SCHEMA mallory TO PUBLIC")
        house.etl.execute("SELECT pgtrickle.create_stream_table('theirs', 'SELECT id, amount FROM mallory.items')")
        client.tick()

    def tick(self) -> dict[str, str]:
        """Change steward's own table, tick, and see that its stream table did not suffer."""
        self.house.etl.execute("INSERT INTO orders SELECT count(*) + 1, 5 FROM orders")
        self.house.db.execute("UPDATE pgtrickle.pgt_stream_tables SET retry_at = NULL")
        actions = {result.stream_table: str(result.action) for result in self.client.tick()}
        assert actions["public.totals"] == "DIFFERENTIAL", actions
        return actions

    def equal(self) -> bool:
        """Whether the stream table shows what its query gives."""
        shown = self.house.db.execute("SELECT id, amount FROM theirs ORDER BY 1, 2")
        return shown == self.house.db.execute("SELECT id, amount FROM mallory.items ORDER BY 1, 2") and bool(shown)


@pytest.fixture
def shop(home: House) -> Iterator[Shop]:
    with local_client(home.refresher) as (client, _):
        yield Shop(home, client)


NOTICED = {
    "a capture trigger replaced by one of her own": (
        "CREATE FUNCTION mallory.nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
        "CREATE OR REPLACE TRIGGER {insert} AFTER INSERT ON mallory.items "
        "FOR EACH STATEMENT EXECUTE FUNCTION mallory.nothing()",
        "INSERT INTO mallory.items VALUES (3, 30)",
    ),
    "a capture trigger dropped": ("DROP TRIGGER {delete} ON mallory.items", "DELETE FROM mallory.items WHERE id = 1"),
    "a capture trigger under another name": (
        "ALTER TRIGGER {update} ON mallory.items RENAME TO x",
        "UPDATE mallory.items SET amount = 11 WHERE id = 1",
    ),
    "a capture trigger that fires for replicas only": (
        "ALTER TABLE mallory.items ENABLE REPLICA TRIGGER {insert}",
        "INSERT INTO mallory.items VALUES (3, 30)",
    ),
    "a capture trigger switched off by its table": (
        "ALTER TABLE mallory.items DISABLE TRIGGER USER",
        "UPDATE mallory.items SET amount = 12",
    ),
    "a truncation that nobody sees": (
        "ALTER TABLE mallory.items DISABLE TRIGGER {truncate}",
        "TRUNCATE mallory.items",
        "INSERT INTO mallory.items VALUES (7, 70)",
    ),
    "a child that is filled before anybody looks": (
        "CREATE TABLE mallory.child () INHERITS (mallory.items)",
        "INSERT INTO mallory.child VALUES (3, 30)",
    ),
    "a filled table that becomes a child": (
        "CREATE TABLE mallory.child (LIKE mallory.items)",
        "INSERT INTO mallory.child VALUES (3, 30)",
        "ALTER TABLE mallory.child INHERIT mallory.items",
    ),
    "rows that come through a table of which it became a part": (
        "CREATE TABLE mallory.whole (id integer NOT NULL, amount integer) PARTITION BY RANGE (id)",
        "ALTER TABLE mallory.whole ATTACH PARTITION mallory.items DEFAULT",
        "INSERT INTO mallory.whole VALUES (3, 30)",
    ),
    "rows that come through a table of which it became a child": (
        "CREATE TABLE mallory.whole (id integer NOT NULL, amount integer)",
        "ALTER TABLE mallory.items INHERIT mallory.whole",
        "UPDATE mallory.whole SET amount = 33",
    ),
    "a rewrite to another table's rows": (
        "ALTER TABLE mallory.items DISABLE TRIGGER ALL",
        "DELETE FROM mallory.items",
        "INSERT INTO mallory.items VALUES (9, 90)",
        "ALTER TABLE mallory.items ENABLE ALWAYS TRIGGER {insert}",
        "ALTER TABLE mallory.items ENABLE ALWAYS TRIGGER {delete}",
        "ALTER TABLE mallory.items ENABLE ALWAYS TRIGGER {update}",
        "ALTER TABLE mallory.items ENABLE ALWAYS TRIGGER {truncate}",
    ),
}


@pytest.mark.parametrize("attack", first(6, NOTICED))
def test_what_the_owner_of_a_source_hides_from_capture_is_noticed_and_read_anew(shop: Shop, attack: str) -> None:
    oid = shop.house.db.value("SELECT 'mallory.items'::regclass::oid")
    names = {event: f"pgtrickle_{event}_{oid}" for event in ("insert", "update", "delete", "truncate")}
    for statement in NOTICED[attack]:
        shop.mallory.execute(statement.format(**names).encode())
    assert not shop.equal(), "something was hidden"
    actions = shop.tick()
    if actions.get("public.theirs") != "REINITIALIZE":
        actions = shop.tick()
    assert actions["public.theirs"] == "REINITIALIZE", actions
    assert shop.equal()
    shop.mallory.execute("INSERT INTO mallory.items VALUES (99, 99)")
    assert shop.tick()["public.theirs"] == "DIFFERENTIAL"
    assert shop.equal()


FOLLOWED = {
    "a trigger that changes what comes": (
        "CREATE FUNCTION mallory.twist() RETURNS trigger LANGUAGE plpgsql "
        "AS $$ BEGIN NEW.amount := -1; RETURN NEW; END $$",
        "CREATE TRIGGER twist BEFORE INSERT ON mallory.items FOR EACH ROW EXECUTE FUNCTION mallory.twist()",
        "INSERT INTO mallory.items VALUES (3, 30)",
    ),
    "a trigger that drops what comes": (
        "CREATE FUNCTION mallory.drop() RETURNS trigger LANGUAGE plpgsql "
        "AS $$ BEGIN RETURN CASE WHEN NEW.id = 4 THEN NEW END; END $$",
        "CREATE TRIGGER drop BEFORE INSERT ON mallory.items FOR EACH ROW EXECUTE FUNCTION mallory.drop()",
        "INSERT INTO mallory.items VALUES (3, 30), (4, 40)",
    ),
    "a trigger that writes the table again after capture": (
        "CREATE FUNCTION mallory.again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF pg_trigger_depth() = 1 THEN UPDATE mallory.items SET amount = amount + 1; END IF; RETURN NULL; END $$",
        "CREATE TRIGGER zz_again AFTER INSERT ON mallory.items FOR EACH STATEMENT EXECUTE FUNCTION mallory.again()",
        "INSERT INTO mallory.items VALUES (3, 30)",
    ),
    "a rule that turns an insert into a deletion": (
        "CREATE RULE r AS ON INSERT TO mallory.items DO INSTEAD DELETE FROM mallory.items WHERE id = 1",
        "INSERT INTO mallory.items VALUES (3, 30)",
    ),
    "a rule that doubles what comes": (
        "CREATE RULE r AS ON UPDATE TO mallory.items "
        "DO ALSO INSERT INTO mallory.items VALUES (NEW.id + 100, NEW.amount)",
        "UPDATE mallory.items SET amount = 30 WHERE id = 1",
    ),
    "a default that costs others nothing": (
        "CREATE FUNCTION mallory.d() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN 5; END $$",
        "ALTER TABLE mallory.items ALTER amount SET DEFAULT mallory.d()",
        "INSERT INTO mallory.items (id) VALUES (3)",
    ),
    "another name and another schema": (
        "CREATE SCHEMA elsewhere AUTHORIZATION mallory",
        "ALTER TABLE mallory.items RENAME TO things",
        "INSERT INTO mallory.things VALUES (3, 30)",
        "ALTER TABLE mallory.things RENAME TO items",
    ),
    "a writer within a transaction that is half undone": (
        "BEGIN",
        "INSERT INTO mallory.items VALUES (3, 30)",
        "SAVEPOINT s",
        "DELETE FROM mallory.items",
        "ROLLBACK TO s",
        "COMMIT",
    ),
    "a write in a transaction that is prepared": (
        "BEGIN",
        "INSERT INTO mallory.items VALUES (3, 30)",
        "PREPARE TRANSACTION 'later'",
        "COMMIT PREPARED 'later'",
    ),
    "a constraint that lies about what is there": (
        "ALTER TABLE mallory.items ADD CHECK (amount < 15) NOT VALID",
        "INSERT INTO mallory.items VALUES (3, 3)",
    ),
}


@pytest.mark.parametrize("attack", FOLLOWED)
def test_what_the_owner_of_a_source_has_rows_go_through_is_followed_exactly(shop: Shop, attack: str) -> None:
    shop.house.db.execute(
        "GRANT CREATE ON DATABASE " + shop.house.db.value("SELECT current_database()") + " TO mallory"
    )
    for statement in FOLLOWED[attack]:
        shop.mallory.execute(statement.encode())
    assert not shop.equal(), "something was changed"
    assert shop.tick()["public.theirs"] == "DIFFERENTIAL"
    assert shop.equal()


STOPPED = {
    "the source is dropped with all that reads it": ("DROP TABLE mallory.items CASCADE",),
    "the source is dropped and made again under its name": ("DROP TABLE mallory.items CASCADE", ITEMS),
    "the right to look at its schema is taken back": ("REVOKE USAGE ON SCHEMA mallory FROM PUBLIC",),
    "a policy is forced on it": (
        "CREATE POLICY p ON mallory.items USING (false)",
        "ALTER TABLE mallory.items ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE mallory.items FORCE ROW LEVEL SECURITY",
    ),
    "a view is put in its place": (
        "DROP TABLE mallory.items CASCADE",
        "CREATE VIEW mallory.items AS SELECT 1 / 0 AS id, 2 AS amount",
    ),
}


@pytest.mark.parametrize("attack", STOPPED)
def test_a_source_that_is_taken_away_stops_what_reads_it_and_nothing_else(shop: Shop, attack: str) -> None:
    if "schema" in attack:
        shop.house.db.execute("REVOKE mallory FROM steward")
    before = shop.house.db.execute("SELECT * FROM theirs ORDER BY 1")
    for statement in STOPPED[attack]:
        shop.mallory.execute(statement.encode())
    if attack != "the right to look at its schema is taken back":
        shop.house.db.execute("REVOKE mallory FROM steward")
    assert shop.tick().get("public.theirs") == "FAILED"
    ((told,),) = shop.house.db.execute("SELECT last_error FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'theirs'")
    assert told
    assert shop.house.db.execute("SELECT * FROM theirs ORDER BY 1") == before, "it keeps what it had"
    shop.tick()


def test_the_owner_of_a_source_turns_no_captured_table_into_a_view(shop: Shop) -> None:
    """PostgreSQL 15 still makes a view of an empty table by a rule, unless it has triggers."""
    shop.mallory.execute("DELETE FROM mallory.items")
    assert shop.tick()["public.theirs"] == "DIFFERENTIAL"
    rule = 'CREATE RULE "_RETURN" AS ON SELECT TO mallory.items DO INSTEAD SELECT 1 AS id, 2 AS amount'
    assert stopped(shop.mallory, rule) in ("42809", "55000")
    shop.mallory.execute("INSERT INTO mallory.items VALUES (3, 30)")
    assert shop.tick()["public.theirs"] == "DIFFERENTIAL"
    assert shop.equal()


def test_the_owner_of_one_source_removes_neither_the_stream_table_over_it_nor_its_hidden_view(shop: Shop) -> None:
    for attack in (
        "DROP TABLE mallory.items",
        "ALTER TABLE mallory.items DROP COLUMN amount",
        "ALTER TABLE mallory.items ALTER amount TYPE text",
    ):
        assert stopped(shop.mallory, attack) in ("2BP01", "0A000"), attack
    for attack in (
        "DROP TABLE public.theirs",
        "INSERT INTO public.theirs VALUES (5, 5)",
        "SELECT * FROM public.theirs",
        "SELECT pgtrickle.drop_stream_table('public.theirs')",
        "ALTER TABLE public.theirs OWNER TO mallory",
    ):
        assert stopped(shop.mallory, attack) == "42501", attack
    assert shop.equal()


def test_an_index_expression_of_a_source_never_runs_as_who_refreshes(
    shop: Shop,
) -> None:
    session: Session = shop.mallory
    for statement in (
        "CREATE TABLE mallory.ran (as_role name)",
        "GRANT INSERT ON mallory.ran TO PUBLIC",
        "CREATE FUNCTION mallory.bite(integer) RETURNS integer LANGUAGE plpgsql "
        "IMMUTABLE AS $$ BEGIN RETURN $1; END $$",
        "CREATE INDEX ON mallory.items (mallory.bite(amount)) WHERE mallory.bite(amount) > 0",
        "CREATE FUNCTION mallory.act() RETURNS void LANGUAGE sql "
        "AS $$ INSERT INTO mallory.ran VALUES (current_user) $$",
        "CREATE OR REPLACE FUNCTION mallory.bite(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS "
        "$$ BEGIN PERFORM mallory.act(); RETURN $1; END $$",
        "INSERT INTO mallory.items SELECT i, i FROM generate_series(10, 300) AS i",
    ):
        session.execute(statement.encode())
    assert shop.tick()["public.theirs"] == "DIFFERENTIAL"
    session.execute("TRUNCATE mallory.items")
    session.execute("INSERT INTO mallory.items SELECT i, i FROM generate_series(1, 300) AS i")
    shop.tick()
    shop.house.etl.execute("ANALYZE mallory.items")
    assert shop.equal()
    assert session.execute("SELECT DISTINCT as_role FROM mallory.ran").fetchall() == [("mallory",)]

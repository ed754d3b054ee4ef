"""A catalog that got another owner: the group of owners follows it, and keeps no rights of the former one."""

from collections.abc import Iterator

import pytest

import pytrickle
from tests.commands import commands
from tests.conftest import Database
from tests.security.test_group_roles import as_etl, drop_groups, etl


@pytest.fixture
def reassigned(every_empty_db: Database) -> Iterator[Database]:
    """A catalog with group roles that was the role etl's, and now is the role heir's."""
    db = every_empty_db
    etl(db)
    pytrickle.install(f"{db.dsn}?user=etl")
    pytrickle.install(as_etl(db), roles=True)
    db.create_role("heir")
    db.execute("REASSIGN OWNED BY etl TO heir")
    yield db
    drop_groups(db)


def owners_of(db: Database) -> set[str]:
    found = "SELECT r.rolname::text FROM pg_auth_members AS m JOIN pg_roles AS r ON r.oid = m.roleid"
    return {name for (name,) in db.execute(f"{found} WHERE m.member = 'pytrickle_owner'::regrole")}


def test_doctor_tells_of_rights_that_the_group_of_owners_kept(reassigned: Database) -> None:
    assert owners_of(reassigned) == {"etl"}
    told = commands(f"{reassigned.dsn}?user=heir")("doctor").stdout
    assert "the rights of etl, who does not own the catalog any more, to pytrickle_owner" in " ".join(told.split())
    assert "pytrickle install --roles" in " ".join(told.split())


def test_an_install_with_roles_has_the_group_follow_the_owner(reassigned: Database) -> None:
    pytrickle.install(f"{reassigned.dsn}?options=-crole%3Dheir", roles=True)
    assert owners_of(reassigned) == {"heir"}
    assert reassigned.execute("SELECT pgtrickle_private.outgrown_membership()") == []


def test_what_else_the_group_was_given_stays_as_long_as_it_follows(reassigned: Database) -> None:
    pytrickle.install(f"{reassigned.dsn}?options=-crole%3Dheir", roles=True)
    reassigned.create_role("shopkeeper")
    reassigned.execute("GRANT shopkeeper TO pytrickle_owner")
    pytrickle.install(f"{reassigned.dsn}?options=-crole%3Dheir", roles=True)
    assert owners_of(reassigned) == {"heir", "shopkeeper"}

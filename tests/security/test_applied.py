"""Who applies a project: the owner of the catalog, as ever, and no stranger keeps him waiting."""

from __future__ import annotations

from pathlib import Path

import pytest

import pytrickle
from pytrickle.definitions.apply import ALONE
from pytrickle.errors import InsufficientPrivilege
from tests.acceptance.projects import told, write
from tests.conftest import Database
from tests.security.attempts import stopped
from tests.security.roles import House
from tests.security.test_group_roles import member, shop

__all__ = ["shop"]

CREATED = [("create", "stream table", "public.copied")]
FORMER = "SELECT pg_advisory_lock(hashtextextended('pytrickle apply', 0))"


def project(directory: Path, source: str, settings: str = "") -> Path:
    write(directory, {"pytrickle.toml": f'project = "shop"\n{settings}', "copied.sql": f"SELECT id FROM {source}"})
    return directory


def test_the_owner_of_the_catalog_plans_and_applies_though_he_is_nothing_else(home: House, tmp_path: Path) -> None:
    with pytrickle.connect(home.refresher, engine="postgres") as client:
        assert told(client.plan(project(tmp_path, "orders"))) == CREATED
        assert told(client.apply(tmp_path, dry_run=True)) == CREATED
        assert not home.db.value("SELECT to_regclass('copied') IS NOT NULL")
        assert told(client.apply(tmp_path)) == CREATED and not client.plan(tmp_path)


@pytest.mark.parametrize("options", ["", "&options=-crole%3Detl"], ids=["inherited", "by SET ROLE"])
def test_members_of_the_owners_apply_as_the_owner(shop: Database, tmp_path: Path, options: str) -> None:
    member(shop, "dee", "pytrickle_owner").close()
    shop.execute("GRANT CREATE ON SCHEMA public TO etl, dee")
    with pytrickle.connect(f"{shop.dsn}?user=dee{options}", engine="postgres") as client:
        assert told(client.apply(project(tmp_path, "sales.orders"), dry_run=True)) == CREATED
        assert told(client.apply(tmp_path)) == CREATED and not client.plan(tmp_path)


def test_strangers_neither_hold_who_applies_nor_apply_themselves(home: House, tmp_path: Path) -> None:
    mallory = home.session("mallory", "SELECT ON orders")
    mallory.execute(FORMER)
    mallory.execute("SELECT pg_advisory_lock(n) FROM generate_series(1, 100) AS n")
    with pytrickle.connect(home.refresher, engine="postgres") as client:
        assert told(client.apply(project(tmp_path, "orders"))) == CREATED
    assert stopped(home.session("mallory", autocommit=False), ALONE) == "42501"
    with (
        pytest.raises(InsufficientPrivilege),
        pytrickle.connect(f"{home.db.dsn}?user=mallory", engine="postgres") as stranger,
    ):
        stranger.apply(tmp_path)

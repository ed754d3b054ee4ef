"""What the command does where its output, its files or its arguments are not what it needs."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.acceptance.test_cli import MAIN, create_tables
from tests.conftest import Database


@pytest.fixture
def shop(db: Database) -> Database:
    return create_tables(db)


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_what_cannot_be_written_is_a_sentence_and_not_a_traceback(shop: Database, as_json: tuple[str, ...]) -> None:
    shop.execute("SELECT pgtrickle.create_stream_table('käse', 'SELECT count(*) AS n FROM orders')")
    environment = {**os.environ, "PYTRICKLE_DSN": shop.dsn}

    def told(*arguments: str | bytes, output: str = os.devnull, **variables: str) -> tuple[int, str]:
        with open(output, "w") as stdout:
            found = subprocess.run(
                [*MAIN, *arguments, *as_json],
                env={**environment, **variables},
                stdout=stdout,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert "Traceback" not in found.stderr
        return found.returncode, found.stderr

    code, sentence = told("status", output="/dev/full")
    assert code == 1 and "No space left on device" in sentence
    code, sentence = told("export", "shop", "/proc/nothing")
    assert code == 1 and "/proc/nothing" in sentence
    code, sentence = told("refresh", b"k\xe4se")
    assert code == 2 and "UTF-8" in sentence
    assert told("status", PYTHONIOENCODING="ascii") == (0, "")


def test_json_has_escapes_for_what_the_output_cannot_encode(shop: Database) -> None:
    shop.execute("SELECT pgtrickle.create_stream_table('käse', 'SELECT count(*) AS n FROM orders')")
    environment = {**os.environ, "PYTRICKLE_DSN": shop.dsn, "PYTHONIOENCODING": "ascii"}
    written = subprocess.run([*MAIN, "status", "--json"], env=environment, capture_output=True, check=True).stdout
    assert json.loads(written)["stream_tables"][0]["stream_table"] == 'public."käse"'

"""What tools ask the catalog is answered to the roles that the documents name, and to every other one."""

import ast
from pathlib import Path

import pytest

import pytrickle.integrations
from tests.conftest import Database

# The question of each tool, by the name that it has in its module; the tools themselves need not be installed.
QUESTIONS = {"airflow": "COMPLETE", "dagster": "STANDING", "sqlmesh": "REACHED"}


def question(module: str, name: str) -> str:
    """Return the SQL that a module asks the database."""
    text = Path(pytrickle.integrations.__file__).with_name(f"{module}.py").read_text()
    (found,) = (
        node.value.value
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign)
        and ast.unparse(node.targets[0]) == name
        and isinstance(node.value, ast.Constant)
    )
    return str(found)


@pytest.mark.parametrize("module", QUESTIONS)
def test_a_role_without_rights_on_the_catalog_learns_how_far_something_is_complete(db: Database, module: str) -> None:
    db.execute("CREATE TABLE orders (id int)")
    db.execute("SELECT pgtrickle.create_stream_table('sales', 'SELECT id FROM orders')")
    db.execute("SELECT pgtrickle.advance_watermark('orders', '2026-03-02 12:00Z'::timestamptz)")
    db.execute("UPDATE pgtrickle.pgt_stream_tables SET effective_watermark = '2026-03-02 11:00Z'")
    db.create_role("reporter")
    asked = question(module, QUESTIONS[module]).replace("{name}", "%(name)s")
    with db.connect(user="reporter") as reporter:
        answers = [
            reporter.execute(asked.encode(), {"name": name, "through": None}).fetchone()
            for name in ("public.sales", "public.orders")
        ]
    assert None not in answers and len({answer[0] for answer in answers if answer}) == 2

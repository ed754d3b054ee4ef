"""What the pages show, and what they never show, of a real database."""

from __future__ import annotations

import re
from html import unescape

import pytest
from starlette.testclient import TestClient

from tests.conftest import Database
from tests.console.conftest import PASSWORD, console
from tests.equivalence.local_engine import local_client

ORDER_TOTALS = "/table?name=public.order_totals"
PAGES = {
    "/": ("public.regions_at_risk", "gated", "tolerance 4 min"),
    ORDER_TOTALS: ("Data is fresh", "join on order_lines.order_id = orders.id", "public.sales_by_region"),
    "/table?name=public.revenue": ("The last refresh failed, 2 in a row.", "pytrickle history"),
    "/groups": ("shop", "apart", "public.payments"),
    "/group?name=shop": ("cut that hold_back shows", "public.order_lines", "16 min"),
    "/sources": ("public.orders", "2 min 30 s"),
    "/source?name=public.orders": ("Watermark over time", "public.unpaid_orders"),
    "/source?name=public.customers": ("This source never advanced.",),
    "/refreshes": ("Slowest of the last day", "FULL", "SQLSTATE 22012"),
    "/late": ("ordered_at", "1 d"),
    "/alerts": ("public.order_lines is stale: not seen", "public.payments was idle"),
    "/feeds": ("billing", "public.order_totals"),
}

STARTED = re.compile(r'<td data-label="Started" class="when">([^<]*)</td>')
HISTORY = """
SELECT to_char(started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') FROM pgtrickle.pgt_refresh_history
ORDER BY refresh_id DESC
"""


def text_of(page: str) -> str:
    """Return what is to be read on a page."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


@pytest.mark.parametrize("path", PAGES)
def test_each_page_shows_its_part(site: TestClient, path: str) -> None:
    answer = site.get(path)
    assert answer.status_code == 200
    read = text_of(answer.text)
    assert [words for words in PAGES[path] if words not in read] == []


def test_no_page_has_a_secret_or_a_value_of_a_row_or_a_line_that_its_policy_forbids(site: TestClient) -> None:
    for path in PAGES:
        page = site.get(path).text
        assert not re.search(rf"{PASSWORD}|s3cr3t-of-a-row|postgresql://|127\.0\.0\.1", page), path
        assert not re.search(r"<style|style=|\son\w+=|<script(?! src=\"/assets/)|https?://", page), path


def test_a_page_is_only_read(site: TestClient) -> None:
    assert site.head(ORDER_TOTALS).status_code == 200
    for path in ("/", "/state", "/assets/console.css"):
        answer = site.post(path)
        assert (answer.status_code, answer.headers.get("allow", "GET, HEAD")) in (
            (405, "GET, HEAD"),
            (405, "HEAD, GET"),
        )
    assert "only read" in text_of(site.post("/").text)


@pytest.mark.parametrize(
    "path",
    [
        *("/nowhere", "/table", "/table?name=public.nothing", "/group?name=nothing", "/source?name=pg_class"),
        *("/refreshes?show=nothing", "/refreshes?before=x", f"/refreshes?before={9 * 10**19}", "/refreshes?after=-1"),
        *("/group?name=shop&span=2h", "/assets/nothing.js", "/assets/../app.py", "/assets/%2e%2e/app.py"),
    ],
)
def test_what_is_not_there_is_said_in_a_sentence(site: TestClient, path: str) -> None:
    answer = site.get(path)
    assert answer.status_code == 404
    assert "There is nothing of this name." in answer.text or "There is no such page." in answer.text
    assert "content-security-policy" in answer.headers


def test_the_graph_leads_to_what_it_shows(site: TestClient) -> None:
    drawn = re.search(r'<svg class="graph".*?</svg>', site.get("/").text, re.DOTALL)
    assert drawn
    places = [unescape(place) for place in re.findall(r'<a href="([^"]*)" class="node is-(?:\w+)"', drawn[0])]
    assert len(places) == 9
    assert {site.get(place).status_code for place in places} == {200}
    assert len(re.findall('<path class="edge"', drawn[0])) == 9
    assert set(re.findall(r"node is-(\w+)", drawn[0])) == {"source", "ok", "gated", "error"}


def test_a_gated_source_has_its_page_also_where_nothing_else_is_known_of_it(db: Database) -> None:
    db.execute("CREATE TABLE returns (id int)")
    db.execute("SELECT pgtrickle.gate_source('returns', 'a reload')")
    with console(db.dsn) as site:
        assert "/source?name=public.returns" in site.get("/").text
        page = site.get("/source?name=public.returns")
    assert page.status_code == 200 and "a reload" in page.text


def test_ten_thousand_refreshes_are_read_page_by_page_each_once(site: TestClient, shop: Database) -> None:
    known = [at for (at,) in shop.execute(HISTORY)]
    assert len(known) > 10_000
    seen: list[str] = []
    path = "/refreshes?show=all"
    for _ in range(4):
        page = site.get(path).text
        assert page.count("<tr>") < 100
        seen += STARTED.findall(page.partition('id="history"')[2])
        path = _beside(page, "next")
    assert seen == known[:200]
    assert STARTED.findall(site.get(_beside(page, "prev")).text.partition('id="history"')[2]) == known[100:150]
    assert len(site.get(f"{ORDER_TOTALS}&show=all").content) < 100_000


def _beside(page: str, direction: str) -> str:
    """Return where a page of the history says that the next one is, or the one before it."""
    (place,) = re.findall(rf'href="([^"]*)" rel="{direction}"', page)
    return unescape(place)


def test_a_box_of_the_graph_is_as_wide_as_its_lines_and_tells_all_of_a_longer_name(db: Database) -> None:
    source, reader = "revenue_of_all_regions_and_channels", "x" * 60
    db.execute(f"CREATE TABLE {source} (id int); CREATE TABLE short (id int)")
    db.execute("SELECT pgtrickle.create_stream_table(%s, %s)", reader, f"SELECT id FROM {source} JOIN short USING (id)")
    with console(db.dsn) as site:
        _, _, page = site.get("/").text.partition('<svg class="graph"')
    drawn = re.findall(
        r'<title>(.*?)</title>\s*<rect [^>]*width="([\d.]+)".*?class="title"[^>]*>(.*?)<', page, re.DOTALL
    )
    found = {title: (float(width), shown) for title, width, shown in drawn}
    assert found[f"public.{source}: no watermark"][1] == f"public.{source}"
    assert found[f"public.{source}: no watermark"][0] > 7.5 * len(f"public.{source}")
    assert found[f"public.{reader}: initializing, never refreshed"][1].endswith("x…")
    assert all(width >= 208 for width, _ in found.values())


def test_the_legend_of_a_staircase_has_a_line_for_what_is_drawn_alone(db: Database) -> None:
    db.execute("CREATE TABLE a (id int); CREATE TABLE b (id int)")
    db.execute("SELECT pgtrickle.create_watermark_group('both', ARRAY['a', 'b'])")
    with console(db.dsn) as site:
        db.execute("SELECT pgtrickle.advance_watermark('a', '2026-03-01 10:00Z')")
        alone = site.get("/group?name=both").text
        db.execute("SELECT pgtrickle.advance_watermark('b', '2026-03-01 10:00Z')")
        agreed = site.get("/group?name=both&span=15m").text
    assert ("cut that hold_back shows" in alone, 'class="cut"' in alone) == (False, False)
    assert ("cut that hold_back shows" in agreed, 'class="cut"' in agreed) == (True, True)
    for page in (alone, agreed):
        assert ("gate shut</li>" in page) == ('class="shut"' in page)


def test_names_are_written_as_text_and_lead_to_their_pages(db: Database) -> None:
    source, reader = '"a&b?c=d#e</title><script>"', '"x\u202ey <img src=x>"'
    db.execute(f"CREATE TABLE {source} (id int)")
    db.execute("SELECT pgtrickle.create_watermark_group('<b>1</b>', ARRAY[%s])", source)
    db.execute("SELECT pgtrickle.create_stream_table(%s, %s)", reader, f"SELECT id FROM {source}")
    with console(db.dsn) as site:
        page = site.get("/").text
        assert "<script>" not in page and "<img src=x" not in page and "\u202e" not in text_of(page)
        places = [unescape(place) for place in re.findall(r'href="(/(?:table|source|group)\?[^"]*)"', page)]
        assert len(set(places)) == 3
        for place in places:
            shown = site.get(place)
            assert shown.status_code == 200
            assert "<script>" not in shown.text and "<img src=x" not in shown.text and "<b>1" not in shown.text


def test_changes_that_cancel_each_other_are_told_from_those_that_count(db: Database) -> None:
    db.execute("CREATE TABLE orders (id int, note text); CREATE TABLE lines (id int)")
    db.execute("INSERT INTO orders VALUES (1, 'old'); INSERT INTO lines VALUES (1)")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("counts", "SELECT count(*) FROM orders JOIN lines USING (id)")
        client.create_stream_table("notes", "SELECT note FROM orders")
        client.tick()
        db.execute("UPDATE orders SET note = 'new'")
        db.execute("INSERT INTO lines VALUES (1)")
    with console(db.dsn) as site:
        read = text_of(site.get("/table?name=public.counts").text)
    assert "public.orders: 2, which cancel each other in the columns that are read" in read
    assert re.search(r"public.lines: 1 (?!, which)", read)


def test_changes_that_the_plan_supposes_do_not_wait(site: TestClient) -> None:
    read = text_of(site.get(ORDER_TOTALS).text)
    assert "supposing one change in every source, as there is none now" in read
    assert "public.orders: 0" in read and "public.orders: 1" not in read

"""The console in a real browser: by mouse and by keyboard, wide and narrow, light and dark, while things change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.conftest import Database
from tests.console.browser import chromium, look, served
from tests.console.pictures import take
from tests.console.test_pages import PAGES
from tests.documents import ROOT
from tests.waiting import wait_for

# Each promise is held without a browser as well, as far as a page alone can hold it.
pytestmark = pytest.mark.repeats

WIDE, NARROW = 1280, 400


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(shop: Database) -> Iterator[str]:
    with served(shop.dsn) as opened:
        yield opened


def complaints(browser: webdriver.Chrome) -> list[str]:
    """Return what the browser noted since it was asked last: what its policy forbids, what fails, what is missing."""
    return [entry["message"] for entry in browser.get_log("browser")]


def test_a_click_on_the_graph_shows_plan_and_history(browser: webdriver.Chrome, address: str) -> None:
    look(browser, WIDE)
    browser.get(f"{address}/")
    browser.find_element(By.CSS_SELECTOR, ".node[aria-label='public.order_totals, ok'] .box").click()
    assert browser.find_element(By.TAG_NAME, "h1").text.startswith("public.order_totals")
    assert "join on order_lines.order_id = orders.id" in browser.find_element(By.ID, "plan").text
    drawn = [bar for bar in browser.find_elements(By.CSS_SELECTOR, "#history .wide rect") if bar.size["height"] > 1]
    assert len(drawn) == 160
    sql = browser.find_element(By.ID, "sql")
    assert not sql.find_element(By.TAG_NAME, "pre").is_displayed()
    sql.find_element(By.TAG_NAME, "summary").click()
    assert "SELECT" in sql.find_element(By.TAG_NAME, "pre").text
    older = browser.find_element(By.LINK_TEXT, "older →")
    first = browser.find_element(By.CSS_SELECTOR, "#history td").text
    older.click()
    assert browser.find_element(By.CSS_SELECTOR, "#history td").text < first
    assert browser.execute_script("return document.querySelectorAll('*').length") < 2000
    assert complaints(browser) == []


def test_everything_is_reached_by_keyboard_alone(browser: webdriver.Chrome, address: str) -> None:
    look(browser, WIDE)
    browser.get(f"{address}/")
    stops = [_tab(browser) for _ in range(30)]
    assert stops[0].endswith("#main")
    links = [f"{address}{path}" for path in ("/groups", "/sources", "/refreshes", "/late", "/alerts", "/feeds")]
    assert set(links) <= set(stops)
    assert len({stop for stop in stops if "/table?" in stop or "/source?" in stop}) == 9
    browser.get(f"{address}/")
    while "regions_at_risk" not in _tab(browser):
        pass
    node = browser.switch_to.active_element
    width = node.find_element(By.CLASS_NAME, "box").value_of_css_property("stroke-width")
    assert width == "3.5px", "one sees where one stands"
    node.send_keys(Keys.ENTER)
    wait_for(lambda: browser.current_url.endswith("regions_at_risk"), "the page of the node")


def _tab(browser: webdriver.Chrome) -> str:
    """Press Tab; return where the link leads on which one then stands."""
    browser.switch_to.active_element.send_keys(Keys.TAB)
    place = browser.execute_script("const a = document.activeElement; return a.href?.baseVal ?? a.href ?? a.className")
    return f"{browser.current_url.rstrip('/')}{place}" if place.startswith("/") else str(place)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_is_wider_than_a_phone_and_none_breaks_its_policy(
    browser: webdriver.Chrome, address: str, scheme: str
) -> None:
    look(browser, NARROW, scheme)
    for path in PAGES:
        browser.get(address + path)
        too_wide = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
        assert too_wide <= 0, path
        ground = browser.execute_script(
            "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
        )
        assert (sum(ground) < 200) == (scheme == "dark"), path
    assert complaints(browser) == []
    browser.get(f"{address}/")
    shown = [each.text for each in browser.find_elements(By.CSS_SELECTOR, "#graph .narrow li")]
    assert len(shown) == 9 and "public.unpaid_orders\ngated" in shown
    assert not browser.find_element(By.CSS_SELECTOR, "#graph .wide").is_displayed()


def test_the_staircase_is_drawn_with_the_cut_below_the_fastest_source(browser: webdriver.Chrome, address: str) -> None:
    look(browser, WIDE)
    browser.get(f"{address}/group?name=shop")
    (cut,) = browser.find_elements(By.CSS_SELECTOR, ".wide .cut")
    stairs = browser.find_elements(By.CSS_SELECTOR, ".wide .stair")
    dots = browser.find_elements(By.CSS_SELECTOR, ".wide .dot")
    assert len(stairs) == len(dots) == 3
    top = min(stair.rect["y"] for stair in stairs)
    assert top < cut.rect["y"] < top + max(stair.rect["height"] for stair in stairs)
    assert browser.find_elements(By.CSS_SELECTOR, ".wide .shut")
    browser.find_element(By.LINK_TEXT, "7d").click()
    assert len(browser.find_elements(By.CSS_SELECTOR, ".wide .stair")) == 3


def test_what_changes_is_shown_without_a_reload_and_an_outage_is_told(browser: webdriver.Chrome, db: Database) -> None:
    db.execute("CREATE TABLE orders (id int)")
    db.execute("SELECT pgtrickle.create_watermark_group('loads', ARRAY['orders'])")
    with served(db.dsn) as address:
        look(browser, WIDE)
        browser.get(f"{address}/group?name=loads")
        # With its clock stopped the script renews the page only for what is new, never because time has passed.
        browser.execute_script("window.stays = true; Date.now = () => 0")
        complaints(browser)
        db.execute("SELECT pgtrickle.advance_watermark('orders', '2026-01-01 12:00Z')")
        told = "return document.getElementById('facts').innerText"
        wait_for(lambda: "2026-01-01 12:00:00" in browser.execute_script(told), "the new watermark")
        assert browser.find_elements(By.CSS_SELECTOR, "#staircase .wide .stair")
        assert browser.execute_script("return window.stays") is True
        assert complaints(browser) == []
        db.execute("ALTER SCHEMA pgtrickle RENAME TO elsewhere")
        banner = browser.find_element(By.ID, "banner")
        wait_for(lambda: banner.is_displayed(), "what is wrong")
        assert banner.text == "This database has no pytrickle catalog."
        db.execute("ALTER SCHEMA elsewhere RENAME TO pgtrickle")
        wait_for(lambda: not banner.is_displayed(), "the end of it")
        assert browser.execute_script("return window.stays") is True


@pytest.mark.soak
def test_the_pictures_of_the_document_can_be_taken_anew(shop: Database, tmp_path: Path) -> None:
    take(tmp_path, shop.dsn)
    taken = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert taken.keys() == {path.name for path in (ROOT / "docs/howto").glob("console-*.png")}
    assert all(10_000 < size < 150_000 for size in taken.values())

"""Take the pictures of docs/howto/console.md anew: python -m tests.console.pictures DIRECTORY."""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from pytrickle.catalog import install as migrate
from tests.conftest import Database
from tests.console.browser import chromium, look, served
from tests.console.shop import furnish
from tests.servers import OLDEST, Server

if TYPE_CHECKING:
    from selenium import webdriver

# The name, the page, the width, the height, and what the user prefers.
PICTURES = (
    ("console-overview", "/", 1200, 760, "light"),
    ("console-staircase", "/group?name=shop", 1200, 620, "light"),
    ("console-plan", "/table?name=public.order_totals", 1200, 1060, "dark"),
)


def take(directory: Path, dsn: str) -> None:
    """Take all pictures of a furnished shop."""
    with chromium() as browser, served(dsn) as address:
        for name, page, width, height, scheme in PICTURES:
            look(browser, width, scheme)
            browser.get(address + page)
            (directory / f"{name}.png").write_bytes(_taken(browser, width, height))


def _taken(browser: webdriver.Chrome, width: int, height: int) -> bytes:
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    return base64.b64decode(shot["data"])


def main() -> None:
    """Furnish a shop on a server of its own, and take the pictures."""
    server = Server(OLDEST)
    try:
        dsn = server.create("shop")
        with psycopg.connect(dsn, autocommit=True) as connection:
            migrate.install(connection)
        shop = furnish(Database(dsn, OLDEST), refreshes=3000)
        take(Path(sys.argv[1]), dsn)
        shop.close()
    finally:
        server.stop()


if __name__ == "__main__":
    main()

"""A real Chromium without a screen, and a console that it opens."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import uvicorn
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from pytrickle.console.access import Access
from pytrickle.console.serve import configured
from tests.waiting import wait_for

PACKAGES = ("chromium", "chromium-driver")
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-gpu")


def program(name: str) -> str:
    """Return the path of one of Chromium's programs; Debian's packages are installed where it is missing."""
    if shutil.which(name) is None:
        root = [] if os.geteuid() == 0 else ["sudo"]
        apt = [*root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-y", "-o", "DPkg::Lock::Timeout=300"]
        subprocess.run([*apt, "update"], check=True, capture_output=True)
        subprocess.run([*apt, "install", "--no-install-recommends", *PACKAGES], check=True, capture_output=True)
    return shutil.which(name) or name


@contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    """Open a browser that keeps what is written to its log."""
    options = webdriver.ChromeOptions()
    options.binary_location = program("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for option in OPTIONS:
        options.add_argument(option)
    browser = webdriver.Chrome(options=options, service=Service(program("chromedriver")))
    try:
        yield browser
    finally:
        browser.quit()


@contextmanager
def served(dsn: str) -> Iterator[str]:
    """Serve the console of a database in a thread of this process; yield its address."""
    config = configured(dsn, Access.of("127.0.0.1", 0))
    config.host, config.port = "127.0.0.1", 0
    server = uvicorn.Server(config)
    thread = Thread(target=server.run)
    thread.start()
    try:
        wait_for(lambda: server.started, "the console", thread.is_alive)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def look(browser: webdriver.Chrome, width: int, scheme: str = "light") -> None:
    """Give the browser a width, and its user a preference for light or dark."""
    size: dict[str, Any] = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

"""Who sees the console: on this machine everybody, elsewhere who has the token; never a page of somebody else."""

from __future__ import annotations

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from pytrickle.console.access import Access, Guard


def visitor(access: Access, address: str, **headers: str) -> TestClient:
    """Return a browser in front of a console that says nothing but that one is inside."""
    app = Guard(PlainTextResponse("inside"), access)
    return TestClient(app, f"http://{address}", headers=headers, follow_redirects=False)


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:8080", "LOCALHOST:9000", "[::1]:8080"])
def test_on_this_machine_nothing_is_asked(host: str) -> None:
    assert visitor(Access.of("127.0.0.1", 8080), host).get("/").text == "inside"


@pytest.mark.parametrize(
    "host", ["evil.example:8080", "127.0.0.1.evil.example", "10.0.0.5:8080", "localhost@evil.example"]
)
def test_a_foreign_name_that_points_to_this_machine_is_refused(host: str) -> None:
    answer = visitor(Access.of("127.0.0.1", 8080), "127.0.0.1:8080", host=host).get("/")
    assert (answer.status_code, "--allowed-host" in answer.text) == (403, True)


def test_a_name_that_is_allowed_is_served() -> None:
    access = Access.of("127.0.0.1", 8080, ("Console.Example",))
    assert visitor(access, "console.example").get("/").text == "inside"


def test_a_wildcard_is_reached_by_addresses_and_by_names_that_are_allowed() -> None:
    access = Access.of("0.0.0.0", 8080, ("console.example",))
    for host in ("10.0.0.5:8080", "console.example:8080"):
        assert visitor(access, host).get(f"/?token={access.token}").status_code == 303
    assert visitor(access, "evil.example").get(f"/?token={access.token}").status_code == 403


def test_elsewhere_the_token_is_exchanged_for_a_cookie_that_no_script_reads() -> None:
    access = Access.of("10.0.0.5", 8080)
    assert access.token is not None and len(access.token) >= 40 and access.token not in repr(access)
    browser = visitor(access, "10.0.0.5:8080")
    for wrong in ("/", "/?token=", "/?token=guessed", "/?token=%C3%A4", "/groups", "/assets/console.css", "/state"):
        assert browser.get(wrong).status_code == 403, wrong
    entered = browser.get(f"/?token={access.token}")
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    cookie = entered.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and access.token not in cookie
    assert [browser.get(path).text for path in ("/", "/groups")] == ["inside", "inside"]
    assert visitor(access, "10.0.0.5:8080", cookie=f"{access.cookie_name}=guessed").get("/").status_code == 403


def test_another_console_has_another_token_and_cookie() -> None:
    one, other = Access.of("10.0.0.5", 8080), Access.of("10.0.0.5", 8081)
    assert one.token != other.token and one.cookie_value != other.cookie_value
    assert one.cookie_name != other.cookie_name


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "https://127.0.0.1.evil.example"]
)
def test_what_another_page_sends_is_refused(origin: str) -> None:
    browser = visitor(Access.of("127.0.0.1", 8080), "127.0.0.1:8080", origin=origin)
    assert {browser.request(method, "/").status_code for method in ("GET", "POST", "DELETE")} == {403}
    browser.headers["origin"] = "http://127.0.0.1:8080"
    assert browser.get("/").text == "inside"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_another_page_loads_as_a_part_of_itself_is_refused_and_a_link_is_followed(site: str) -> None:
    browser = visitor(Access.of("127.0.0.1", 8080), "127.0.0.1:8080")
    for mode, destination, expected in (
        ("no-cors", "image", 403),
        ("no-cors", "script", 403),
        ("navigate", "iframe", 403),
        ("cors", "empty", 403),
        ("navigate", "document", 200),
    ):
        told = {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": destination}
        assert browser.get("/table?name=a", headers=told).status_code == expected, told
        for own in ("same-origin", "none"):
            assert browser.get("/state", headers=told | {"sec-fetch-site": own}).status_code == 200


def test_every_answer_is_secured_also_a_refusal() -> None:
    for host in ("127.0.0.1:8080", "evil.example"):
        headers = visitor(Access.of("127.0.0.1", 8080), "127.0.0.1:8080", host=host).get("/").headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
        assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"

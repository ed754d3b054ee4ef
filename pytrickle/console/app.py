"""The web application: an address for each page, each rendered from its template, and the files beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from logging import getLogger
from pathlib import Path
from typing import Any

from anyio.to_thread import current_default_thread_limiter
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from pytrickle.catalog.table_state import reason_for
from pytrickle.console import pages, words
from pytrickle.console.access import Access, Guard
from pytrickle.console.bars import kind_of
from pytrickle.console.database import Database, Seen, Watch
from pytrickle.console.failures import BROKEN, MISSING, Failure, failure_of
from pytrickle.errors import PytrickleError

log = getLogger("pytrickle.console")

HERE = Path(__file__).parent
# As many pages are made at the same time, over as many connections.
THREADS = 5
PAGES: dict[str, Callable[[pages.Asked], pages.Shown]] = {
    "/": pages.overview,
    "/table": pages.table,
    "/groups": pages.groups,
    "/group": pages.group,
    "/sources": pages.sources,
    "/source": pages.source,
    "/refreshes": pages.refreshes,
    "/late": pages.late,
    "/alerts": pages.alerts,
    "/feeds": pages.feeds,
}


def application(dsn: str | None, access: Access) -> ASGIApp:
    """Return the console of one database, as its rules of access let others see it."""
    database = Database(dsn)
    site = Site(database, Watch(database), _environment())

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = THREADS
        yield
        database.close()

    shown = [Route(path, partial(site.page, look)) for path, look in PAGES.items()]
    assets = Mount("/assets", StaticFiles(directory=HERE / "assets"))
    routes = [*shown, Route("/state", site.state), assets]
    handlers = {HTTPException: site.refused, Exception: site.broken}
    return Guard(Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan), access)


@dataclass(frozen=True, slots=True)
class Site:
    """Writes pages."""

    database: Database
    watch: Watch
    environment: Environment

    def page(self, look: Callable[[pages.Asked], pages.Shown], request: Request) -> Response:
        """Answer with a page, or with what keeps it from being shown."""
        seen: Seen | None = None
        try:
            seen = self.watch.look()
            shown = look(pages.Asked(self.database, seen, request.query_params))
        except PytrickleError as error:
            return self._failed(request, failure_of(error), seen)
        except pages.Missing:
            return self._failed(request, Failure(MISSING, code=404), seen)
        return self._written(f"{look.__name__}.html", request, seen, shown)

    def state(self, request: Request) -> Response:
        """Answer with the mark of what is to be seen now, which the script compares with that of its page."""
        try:
            return JSONResponse({"mark": self.watch.look().mark})
        except PytrickleError as error:
            failure = failure_of(error)
            return JSONResponse({"mark": "", "sentence": failure.sentence}, failure.code)

    def refused(self, request: Request, error: Exception) -> Response:
        """Answer where there is no page, or none for this method."""
        code = error.status_code if isinstance(error, HTTPException) else 500
        headers = error.headers if isinstance(error, HTTPException) else None
        said = "There is no such page." if code == 404 else "This page is only read, by GET or HEAD."
        response = self._failed(request, Failure(said, code=code), None)
        response.headers.update(headers or {})
        return response

    def broken(self, request: Request, error: Exception) -> Response:
        """Answer where the console itself fails, and leave the traceback to the log."""
        log.error("The page %s could not be made.", request.url.path, exc_info=error)
        return PlainTextResponse(f"{BROKEN}\n", 500)

    def _failed(self, request: Request, failure: Failure, seen: Seen | None) -> Response:
        return self._written("failure.html", request, seen, {"failure": failure}, failure.code)

    def _written(
        self, name: str, request: Request, seen: Seen | None, shown: dict[str, Any], code: int = 200
    ) -> Response:
        template = self.environment.get_template(name)
        return HTMLResponse(template.render(path=request.url.path, seen=seen, **shown), code)


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=words.harmless,
    )
    environment.filters |= {
        "moment": words.moment,
        "span": words.span_of,
        "age": words.age_of,
        "number": words.number,
        "share": words.share,
        "kind": kind_of,
    }
    environment.globals |= {"reason_for": reason_for, "complete": words.complete, "apart": words.apart}
    return environment

"""The facade: one object for everything that can be done with stream tables from Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any, Unpack

import psycopg
from psycopg.sql import SQL, Composed

from pytrickle.catalog import install as migrate
from pytrickle.catalog import stream_table as catalog
from pytrickle.catalog.options import Options, call
from pytrickle.catalog.server_probe import server_probe
from pytrickle.client.arguments import checked
from pytrickle.client.definitions import Definitions
from pytrickle.client.feeds import Feeds
from pytrickle.client.inspection import Inspection
from pytrickle.client.late_data import LateData
from pytrickle.client.reports import Reports
from pytrickle.client.schedules import Schedules
from pytrickle.client.several import several
from pytrickle.client.sources import Sources
from pytrickle.compute.engine import LazyEngine
from pytrickle.compute.spark.java import has_spark
from pytrickle.config import EngineName, Settings
from pytrickle.database import (
    AGAIN_READABLE,
    USERS_SETTINGS,
    Address,
    Snapshots,
    connection_string,
    filled,
    keep_open,
    named,
    translate_errors,
    trusted,
)
from pytrickle.database import connect as open_connection
from pytrickle.database.engine import Pool, engine
from pytrickle.errors import NotDifferentiable, PytrickleError
from pytrickle.inspect.as_of import AsOf
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.append_mode import check_append
from pytrickle.plan.at_cut import expanded
from pytrickle.progress import Moment, sql_type
from pytrickle.refresh.cycle.rules import check_monotone
from pytrickle.refresh.planner import Planner
from pytrickle.refresh.refresher import Refresher
from pytrickle.refresh.values import RefreshResult
from pytrickle.schedule.daemon import Daemon
from pytrickle.schedule.journal import Journal
from pytrickle.schedule.lanes import Lanes
from pytrickle.schedule.tick import Ticker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OnResult = Callable[[RefreshResult], None]


def install(dsn: Address | None = None, *, roles: bool = False) -> tuple[str, ...]:
    """Install or upgrade the catalog and return the names of what was applied; nothing when it is up to date.

    With `roles`, the group roles pytrickle_reader, _loader, _operator and _owner are created where they are missing, by
    whoever may create roles. Raises InsufficientPrivilege or MigrationError otherwise, and changes nothing then.
    """
    with open_connection(Settings.from_environment(connection_string(dsn)).dsn, role="install") as connection:
        return migrate.install(connection, roles=roles)


def connect(dsn: Address | None = None, spark: SparkSession | None = None, **settings: Any) -> Client:
    """Open a client on a database whose catalog is installed; close it, or let a `with` block do it.

    `dsn` is a libpq connection string or URL, or a URL or engine of SQLAlchemy; without it libpq's environment counts.
    `spark` is a session of your own, which is used as it is; without it one is built when a refresh first needs it.
    `settings` are those of Settings. Raises NotInstalled, CatalogVersionMismatch, ConfigError or ConnectionLost.
    """
    client = Client(Settings.from_environment(connection_string(dsn), **settings), spark)
    try:
        client.verify_catalog()
    except BaseException:
        client.close()
        raise
    return client


def as_of(name: str, watermark: datetime | int, dsn: Address | None = None) -> AsOf:
    """Return the rows that the query of a stream table gave as of an earlier watermark; see Client.as_of."""
    with connect(dsn) as client:
        return client.as_of(name, watermark)


@checked
class Client(Reports, Inspection, Definitions, Sources, Schedules, LateData, Feeds):
    """Stream tables, watermarks and refreshes of one database. Not safe for use by several threads, but for `stop`."""

    def __init__(self, settings: Settings, spark: SparkSession | None = None) -> None:
        super().__init__(Pool(engine(settings.dsn)))
        self.settings = settings
        self._engine = LazyEngine(settings, spark, self._connection)
        self._refresher: Refresher | None = None
        self._snapshots = Snapshots(settings.dsn)
        self._stop = Event()
        lanes = Lanes(settings.max_concurrent_refreshes)
        self._ticker = Ticker(self._refreshing, lanes, settings.history_retention)

    def close(self) -> None:
        """Close the connections, for good; the Spark session stays, since other clients may use it."""
        super().close()
        self._snapshots.close()
        self._ticker.lanes.close()
        if self._refresher is not None:
            self._refresher.connection.close()

    def verify_catalog(self) -> None:
        """Raise NotInstalled or CatalogVersionMismatch unless the catalog fits this package."""
        migrate.verify(self._connection())

    def create_stream_table(
        self, name: str, query: str, *, initialize: bool = False, **options: Unpack[Options]
    ) -> RefreshResult | None:
        """Create a stream table; its rows come with the first refresh.

        Under refresh_mode DIFFERENTIAL or DIFFERENTIAL_STRICT a query without delta rules raises NotDifferentiable.
        Nothing is half-created.
        With `initialize` that refresh follows at once and is returned; if it fails, the stream table is there, empty.
        """
        with translate_errors(), self._connection().transaction():
            pgt_id = self._ask(*call("create_stream_table", {"name": name, "query": query}, options))
            self._connection().execute(AGAIN_READABLE)
            self._require(int(pgt_id))
        return self.refresh(name) if initialize else None

    def alter_stream_table(
        self, name: str, *, query: str | None = None, reset: Sequence[str] = (), **options: Unpack[Options]
    ) -> None:
        """Change the given options of a stream table, from the next tick on; those in `reset` go to their defaults.

        A new `query` must have the same columns. Raises CycleDetected if it would read itself without `allow_circular`,
        QueryRefused if it may but some query of the cycle is not monotone, and NotDifferentiable as creation does.
        """
        connection = self._connection()
        arguments = {"name": name, "query": query, "reset": several("reset", reset)}
        with translate_errors(), connection.transaction():
            self._ask(*call("alter_stream_table", arguments, options))
            connection.execute(AGAIN_READABLE)
            pgt_id = catalog.resolve_name(connection, name)
            if query is not None or not options.keys().isdisjoint(("refresh_mode", "watermark_gating")):
                self._require(pgt_id)
            check_monotone(self._refreshing().planner, connection, pgt_id)

    def drop_stream_table(self, name: str, *, cascade: bool = False) -> None:
        """Drop a stream table with its rows; with `cascade`, also the stream tables that read it."""
        self._call("SELECT pgtrickle.drop_stream_table(name => %s, cascade => %s)", name, cascade)

    def wait_for(self, name: str, watermark: Moment, timeout: timedelta = timedelta(seconds=30)) -> Moment:
        """Wait until a stream table is complete through `watermark`; return its effective watermark of that kind.

        Raises WaitTimeout, which names what is waited for, when `timeout` has passed.
        """
        statement = filled("SELECT pgtrickle.wait_for(%s, %s::{kind}, %s::interval)", kind=sql_type(watermark))
        reached: Moment = self._execute(statement, (name, watermark, timeout))
        return reached

    def assert_fresh(self, name: str, max_staleness: timedelta) -> timedelta:
        """Return how old its data is, at most as a change that it lacks; raise NotFresh beyond, or if never filled."""
        staleness: timedelta = self._call("SELECT pgtrickle.assert_fresh(%s, %s::interval)", name, max_staleness)
        return staleness

    def refresh(self, name: str, *, respect_gate: bool = False, full: bool = False) -> RefreshResult:
        """Refresh one stream table now; with `full` compute all of it anew, also where its refresh mode is strict.

        A gate is passed unless `respect_gate` is set; a hold_back cap is never passed. Raises what made it fail.
        """
        if full:
            self._call("SELECT pgtrickle_private.ask_for_recomputation(%s)", name)
        with translate_errors():
            pgt_id = catalog.resolve_name(self._connection(), name)
        return self._ticker.refresh(pgt_id, respect_gate)

    def tick(self, on_result: OnResult | None = None) -> tuple[RefreshResult, ...]:
        """Refresh all that is due, once, in dependency order; failures are results, not exceptions.

        The first tick of a client, and one per hour after it, also trims the histories.
        """
        return self._ticker.tick(on_result or (lambda result: None))

    def run(
        self,
        once: bool = False,
        on_result: OnResult | None = None,
        on_error: Callable[[PytrickleError], None] | None = None,
        on_leader: Callable[[bool], None] | None = None,
        on_beat: Callable[[bool], None] | None = None,
        statistics_every: timedelta | None = None,
    ) -> None:
        """Tick whenever a watermark or a request arrives, and every poll interval, until `stop` is called.

        What happens is logged, to the loggers `pytrickle.run` and `pytrickle.refresh`, and a summary every so often.
        Of several running on one database, one leads and the others stand by; `on_leader` is told which this one does.
        A lost connection is reported to `on_error` and waited out. `on_beat` is called several times per second while
        nothing is done, with False, and with True when a tick begins.
        """
        if once:
            self.tick(on_result)
            return
        journal = Journal(statistics_every, on_result, on_error, on_leader)

        def lead(leads: bool) -> None:
            if leads and self.settings.engine is EngineName.SPARK:
                self._engine.start_beside()
            journal.lead(leads)

        step = partial(journal.tick, self._ticker.tick)
        beat = on_beat or (lambda busy: None)
        Daemon(self.settings.dsn, self.settings.poll_interval, step, journal.trouble, lead, self._stop, beat).run()

    def stop(self) -> None:
        """End `run` after the tick under way; may be called from another thread or a signal handler."""
        self._stop.set()

    def known_shape(self, pgt_id: int) -> Analysis | None:
        """Return how the query of a stream table is understood, if this client has refreshed it."""
        return self._refresher.planner.known_shape(pgt_id) if self._refresher else None

    def __repr__(self) -> str:
        place = "closed" if self._is_closed else named(self._connection())
        return f"<pytrickle.Client: {place}>"

    def _call(self, statement: str, *arguments: object) -> Any:
        return self._execute(trusted(statement), arguments)

    def _execute(self, statement: SQL | Composed, arguments: Sequence[object]) -> Any:
        """Run a call of one function, which finds names as its caller does, and return what it returns."""
        with translate_errors(), self._connection().transaction():
            return self._ask(statement, arguments)

    def _ask(self, statement: SQL | Composed, arguments: Sequence[object]) -> Any:
        """Run a call within a transaction, in which the caller's path and style of intervals hold from then on."""
        connection = self._connection()
        connection.execute(USERS_SETTINGS)
        ((answer,),) = connection.execute(statement, arguments).fetchall()
        return answer

    def _connection(self) -> psycopg.Connection:
        return self._refreshing().connection

    def _refreshing(self) -> Refresher:
        """Return the refresher on a living connection, opened anew after it was lost.

        What was known by the lost one is not believed any more: the server may have been set back, as by a failover or
        a restored backup, and counts its transactions anew, by which all that we know is recognised.
        """
        self._ensure_open()
        known = self._refresher
        if known is not None:
            if self._snapshots.server and not (known.connection.closed or known.connection.broken):
                return known
            known.connection.close()
        connection = open_connection(self.settings.dsn, role="refresher")
        with translate_errors():
            keep_open(connection)
        self._snapshots.written_by(connection)
        small, direct = self.settings.small_delta_rows, self.settings.direct_delta_rows
        planner = Planner(
            connection,
            small,
            direct,
            self.settings.engine,
            spark_runs=self._engine.runs,
            has_spark=has_spark(),
        )
        self._refresher = Refresher(
            connection,
            self._engine,
            planner,
            self._snapshots,
            self.settings.poll_interval,
            self.settings.statement_timeout,
        )
        return self._refresher

    def _require(self, pgt_id: int) -> None:
        """Refuse what a planner must refuse: a mode that needs a delta rule, or a cut, for a query that has none."""
        table = catalog.stream_table(self._connection(), pgt_id)
        held = table.decision.gating == "hold_back"
        if not table.differential_only and table.window_end is None and not held:
            return
        shape = self._refreshing().planner.shape(self._connection(), pgt_id)
        if held:
            with server_probe(self._connection()) as probe:
                expanded(shape.definition, {}, probe)
        if table.window_end is not None:
            check_append(shape, table.window_end)
        if table.differential_only and shape.full_reason:
            raise NotDifferentiable(f"The query cannot be refreshed differentially: {shape.full_reason}.")

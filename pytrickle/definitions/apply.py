"""Making the database follow a project, in one transaction."""

from collections.abc import Callable
from dataclasses import dataclass

import psycopg
from psycopg.types.json import Jsonb

from pytrickle.catalog.silence_limits import call_with_limits
from pytrickle.database import READABLE_STYLE, USERS_STYLE, filled, function_call
from pytrickle.definitions.apply_sources import CARRIED_OUT, apply_source, own_sources
from pytrickle.definitions.compare import TABLE, Step, compare, path_of
from pytrickle.definitions.compare_groups import REFRESH_GROUP, WATERMARK_GROUP, arguments_of
from pytrickle.definitions.in_order import blame, in_order
from pytrickle.definitions.values import Change, GroupDefinition, Plan, Project

# Two projects, or two who apply one, come one after the other. On this table nobody else has a right, and everybody may
# take an advisory lock.
ALONE = "LOCK TABLE pgtrickle.pgt_refresh_secret IN SHARE ROW EXCLUSIVE MODE"
DROP = "SELECT pgtrickle.drop_stream_table(%s, false, '')"
CREATE = "SELECT pgtrickle_private.create_from(%s, %s, %s, %s)"
SHOW = "SELECT pgtrickle_private.show_at_once(%s)"
FOLLOW = "SELECT pgtrickle_private.follow_definition(%s, %s, %s, %s)"
RENAME = "SELECT pgtrickle_private.rename_stream_table(%s, %s, %s)"
CREATE_REFRESH_GROUP = "SELECT pgtrickle.create_refresh_group(%s, %s::text[], %s, %s)"
DROP_REFRESH_GROUP = "SELECT pgtrickle.drop_refresh_group(%s)"
NUMBER = "SELECT pgtrickle_private.stream_table_id(%s, %s)"
OWN_TABLES = "UPDATE pgtrickle.pgt_stream_tables SET project = %s WHERE pgt_id = ANY (%s) AND project IS NULL"
OWN_WATERMARK_GROUPS = """
UPDATE pgtrickle.pgt_watermark_groups SET project = %s WHERE group_name = ANY (%s) AND project IS NULL
"""
OWN_REFRESH_GROUPS = """
UPDATE pgtrickle.pgt_refresh_groups SET project = %s WHERE group_name = ANY (%s) AND project IS NULL
"""
RESETTABLE = ("stale_after", "on_stale", "idle_after")


@dataclass(frozen=True, slots=True)
class Work:
    """A part of a change that is tried again when it needs what another one makes."""

    origin: str
    name: str
    do: Callable[[], object]


def carry_out(
    connection: psycopg.Connection, project: Project, check: Callable[[int], None], dry_run: bool = False
) -> Plan:
    """Make the database follow the project, all or nothing; return what was done. A dry run takes it back.

    `check` is called with the number of each stream table whose query or options are new, and raises what forbids them.
    """
    with connection.transaction(force_rollback=dry_run):
        connection.execute(ALONE)
        plan = compare(connection, project)
        _Application(connection, project, path_of(connection, project)).run(plan, check)
    return plan


@dataclass(slots=True)
class _Application:
    connection: psycopg.Connection
    project: Project
    path: str

    def run(self, plan: Plan, check: Callable[[int], None]) -> None:
        """Drop first, for names may come free, then rename, then create and alter in the order that is needed.

        What is still read is dropped as soon as what reads it was altered to read something else.
        """
        tables = [change for change in plan.changes if change.kind == TABLE]
        refresh_groups = [change for change in plan.changes if change.kind == REFRESH_GROUP]
        self._drop_refresh_groups(refresh_groups)
        drops = [self._dropping(change.step) for change in tables if change.action in {"drop", "replace"}]
        _, still_read = in_order(self.connection, drops, lambda work: work.do())
        self._rename(tables)
        works = [work for change in plan.changes if (work := self._making(change))]
        self._do([*works, *(work for work, _ in still_read)])
        self._create_refresh_groups(refresh_groups)
        numbers = self._own()
        for change in tables:
            if change.action != "drop":
                check(numbers[change.step.definition.name])

    def _drop_refresh_groups(self, changes: list[Change]) -> None:
        """Drop what is not wanted any more, and what is created with other members."""
        for change in changes:
            if change.action != "create":
                self.connection.execute(DROP_REFRESH_GROUP, (change.name,))

    def _create_refresh_groups(self, changes: list[Change]) -> None:
        for change in changes:
            if change.action != "drop":
                self._create_refresh_group(change.step)

    def _rename(self, changes: list[Change]) -> None:
        for change in changes:
            if change.step.renamed and change.action != "replace":
                self.connection.execute(RENAME, (change.step.pgt_id, change.step.name, change.step.search_path))

    def _do(self, works: list[Work]) -> None:
        _, failed = in_order(self.connection, works, lambda work: work.do())
        if failed:
            raise blame(failed)

    def _dropping(self, step: Step) -> Work:
        def drop() -> None:
            row = self.connection.execute(
                "SELECT pgtrickle_private.qualified_name(pgt_relid) FROM pgtrickle.pgt_stream_tables WHERE pgt_id = %s",
                (step.pgt_id,),
            ).fetchone()
            self.connection.execute(DROP, row)

        return Work(step.origin, step.name, drop)

    def _making(self, change: Change) -> Work | None:
        if change.kind == TABLE and change.action != "drop":
            return Work(change.step.origin, change.name, lambda: self._make(change))
        if change.kind == WATERMARK_GROUP:
            return Work(change.name, change.name, lambda: self._make_watermark_group(change))
        if change.kind in CARRIED_OUT:
            return Work(change.name, change.name, lambda: apply_source(self.connection, change))
        return None

    def _make(self, change: Change) -> None:
        step: Step = change.step
        definition = step.definition
        assert definition is not None
        given = Jsonb(dict(definition.options))
        self.connection.execute(USERS_STYLE)
        if change.action not in {"create", "replace"}:
            query = definition.query if step.query_changed else None
            self.connection.execute(FOLLOW, (step.pgt_id, query, given, step.search_path))
        else:
            created = self.connection.execute(CREATE, (definition.name, definition.query, given, step.search_path))
            if change.action == "replace":
                self.connection.execute(SHOW, created.fetchone())
        self.connection.execute(READABLE_STYLE)

    def _make_watermark_group(self, change: Change) -> None:
        if change.action == "drop":
            self._call("drop_watermark_group", change.name)
            return
        group: GroupDefinition = change.step
        given = {"group_name": group.name, "sources": list(group.members), **arguments_of(group)}
        if change.action == "alter":
            given["reset"] = [name for name in RESETTABLE if name not in given]
        given["search_path"] = self.path
        self.connection.execute(*call_with_limits(f"{change.action}_watermark_group", given))

    def _create_refresh_group(self, group: GroupDefinition) -> None:
        isolation = group.settings.get("isolation", "repeatable_read")
        self.connection.execute(CREATE_REFRESH_GROUP, (group.name, list(group.members), isolation, self.path))

    def _call(self, function: str, name: str) -> None:
        self.connection.execute(function_call(function, [filled("group_name => %s")]), (name,))

    def _own(self) -> dict[str, int]:
        """Note that all that the project defines is its own, also what was there before; return the numbers."""
        numbers = {}
        for each in self.project.stream_tables:
            ((pgt_id,),) = self.connection.execute(NUMBER, (each.name, each.search_path or self.path)).fetchall()
            numbers[each.name] = pgt_id
        self.connection.execute(OWN_TABLES, (self.project.name, list(numbers.values())))
        for statement, groups in (
            (OWN_WATERMARK_GROUPS, self.project.watermark_groups),
            (OWN_REFRESH_GROUPS, self.project.refresh_groups),
        ):
            self.connection.execute(statement, (self.project.name, [group.name for group in groups]))
        own_sources(self.connection, self.project, self.path)
        return numbers

"""Output mode append: a row is shown once its window is closed, and what comes too late for that is recorded.

The rows of open windows are maintained in a hidden table, as the body below a LIMIT is. A window is closed once its end
is not after the effective watermark; then its rows move to the stream table and its state is dropped.
"""

from dataclasses import dataclass

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.apply_plan import CHANGES, CONTENT, INCREMENTS, KEYED, Stage, WindowPlan
from pytrickle.plan.postgres.aggregate_state import Grouped
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.postgres.merge_state import state_table
from pytrickle.plan.postgres.stored_rows import Storage, body_table
from pytrickle.plan.sql.dialect import parse_query, quote

BEFORE, THROUGH, SINCE = (f"\0{name}\0" for name in ("before", "through", "since"))

ANY_ENDED = "EXISTS (SELECT FROM {table} AS g WHERE {end} <= {through})"
RECORDED = """
WITH late AS (
    DELETE FROM pg_temp.{staged} AS g WHERE {end} <= {before}
    RETURNING {end} AS window_end, g.{weight} AS weight, {change} AS change, {effect} AS counts
)
INSERT INTO pgtrickle.pgt_late_changes (pgt_id, window_end, closed_through, weight, change)
SELECT {pgt_id}, window_end, {before}, weight, change FROM late WHERE counts
"""
FORGET = "DELETE FROM {table} AS g WHERE {end} <= {moment}"
CLOSE = """
WITH closed AS (DELETE FROM {body} WHERE {window_end} <= {through} RETURNING {columns})
INSERT INTO {table} ({columns}) SELECT {columns} FROM closed
"""
# How emitted windows differ from what is computed now. For a row the ledger has how many copies came and went, so these
# are added up with the rows found; for a group it has only that its row is no longer what it was.
MISSED = """
INSERT INTO pgtrickle.pgt_late_changes (pgt_id, window_end, closed_through, weight, change)
SELECT {pgt_id}, d.window_end, {before}, sum(d.weight), d.change
FROM (
    SELECT g.{window_end} AS window_end, g.{weight} AS weight, {change} AS change FROM ({difference}) AS g{known_rows}
) AS d
GROUP BY d.window_end, d.change HAVING {fresh}
"""
KNOWN = "FROM pgtrickle.pgt_late_changes AS l WHERE l.pgt_id = {pgt_id} AND l.window_end <= {before}{later}"
NOT_KNOWN = "(d.window_end, d.change) NOT IN (SELECT l.window_end, l.change {known})"
KNOWN_ROWS = " UNION ALL SELECT l.window_end, -l.weight, l.change {known}"
RECOMPUTED = "EXISTS (SELECT FROM pg_temp.{keyed} AS k WHERE {same})"
OF_CLOSED = "SELECT {columns} FROM {rows} AS q WHERE {window_end} <= {before}{later}"


def shown_by_keys(shape: Analysis) -> dict[str, str]:
    """Return the output columns that the keys of a group alone determine: expressions over the alias g, by name."""
    if shape.grouped is None:
        return {}
    keys = set(shape.grouped.keys)
    return {name: text for name, text in shape.grouped.aggregate.output if _columns(text) <= keys}


def end_key(shape: Analysis, column: str) -> str | None:
    """Return the key of a group that is the end of its window, or None where that is only computed from keys."""
    shown = shape.grouped.aggregate.shown_keys if shape.grouped else ()
    return next((key for key, name in shown if name == column), None)


def check_append(shape: Analysis, column: str) -> None:
    """Raise NotDifferentiable unless every row can be emitted once, when the window that `column` ends is closed."""
    if shape.query is None:
        raise NotDifferentiable(f"Output mode append needs a delta rule: {shape.full_reason}.")
    if shape.query.top is not None:
        raise NotDifferentiable(
            "Output mode append emits rows for good, but those that LIMIT shows give way to others."
        )
    if shape.grouped is not None and column not in shown_by_keys(shape):
        hint = f"Group by {column}, or compute it from what the query groups by."
        raise NotDifferentiable(f"The end of a window, {column}, must be known of a group before its rows are.", hint)


def asks_for_closing(shape: Analysis, column: str) -> str:
    """Write whether there are rows, or the state of groups that HAVING hides, of windows that end by `through`."""
    number = shape.definition.pgt_id
    found = [ANY_ENDED.format(table=body_table(number), end=f"g.{quote(column)}", through=THROUGH)]
    if shape.grouped is not None:
        found.append(ANY_ENDED.format(table=state_table(number), end=shown_by_keys(shape)[column], through=THROUGH))
    return parameterized(f"SELECT {' OR '.join(found)}")


def parameterized(text: str) -> str:
    """Turn the marks in a statement into parameters, and its percent signs into what stands for them then.

    >>> parameterized(f"SELECT '%', {BEFORE}")
    "SELECT '%%', CAST(%(before)s AS timestamptz)"
    """
    text = text.replace("%", "%%")
    for mark in (BEFORE, THROUGH, SINCE):
        text = text.replace(mark, f"CAST(%({mark[1:-1]})s AS timestamptz)")
    return text


@dataclass(frozen=True, slots=True)
class EventWindows:
    """Writes the statements about the windows of one stream table; `column` ends them."""

    shape: Analysis
    column: str
    stage: Stage

    def plan(self, keyed: bool, after: str) -> WindowPlan:
        """Write all of them: with `keyed` some groups are also recomputed, `after` reads all rows computed anew."""
        since = f" AND {quote(self.column)} > {SINCE}", f" AND l.window_end > {SINCE}"
        return WindowPlan(
            tuple(map(parameterized, () if self.stage.whole else self._withhold(keyed))),
            parameterized(self._missed(after)) if self.stage.whole else "",
            parameterized(self._missed(after, *since)) if self.stage.whole else "",
            parameterized(self._forget_closed()),
            parameterized(self._close()),
            parameterized(self._close_state()) if self._keeps_state else None,
            self._state_index() if self.stage.makes_state else None,
        )

    @property
    def _pgt_id(self) -> int:
        return self.shape.definition.pgt_id

    @property
    def _keeps_state(self) -> bool:
        # A refresh that keeps no state is followed by one that computes it anew.
        return self.shape.grouped is not None and self.stage is not Stage.CONTENT

    def _withhold(self, keyed: bool) -> tuple[str, ...]:
        """Take what concerns closed windows out of staged changes and record it, but for increments without effect.

        Groups that are recomputed are only taken out.
        """
        grouped = self.shape.grouped
        if grouped is None:
            return (self._recorded(CHANGES, WEIGHT, "true"),)
        recorded = self._recorded(INCREMENTS, "pgt_rows", _has_effect(grouped, keyed))
        gone = FORGET.format(table=f"pg_temp.{KEYED}", end=self._end_of(KEYED), moment=BEFORE)
        return (recorded, gone) if keyed else (recorded,)

    def _recorded(self, name: str, weight: str, effect: str) -> str:
        return RECORDED.format(
            staged=name,
            end=self._end_of(name),
            before=BEFORE,
            weight=weight,
            change=self._change(name),
            effect=effect,
            pgt_id=self._pgt_id,
        )

    def _forget_closed(self) -> str:
        """Take closed windows out of what was computed anew."""
        name, table = CONTENT, f"pg_temp.{CONTENT}"
        if self.stage.makes_state:
            name, table = INCREMENTS, state_table(self._pgt_id)
        return FORGET.format(table=table, end=self._end_of(name), moment=BEFORE)

    def _close(self) -> str:
        """Move the rows of windows that are closed now to the stream table."""
        shown = Storage.of(self.shape.definition, self.shape.hashed)
        return CLOSE.format(
            body=body_table(self._pgt_id),
            window_end=quote(self.column),
            through=THROUGH,
            columns=shown.column_list(),
            table=shown.table,
        )

    def _close_state(self) -> str:
        return FORGET.format(table=state_table(self._pgt_id), end=self._end_of(INCREMENTS), moment=THROUGH)

    def _state_index(self) -> str | None:
        """Have the state of closed windows found by an index, where a key of their groups is the end."""
        key = end_key(self.shape, self.column)
        return f"CREATE INDEX ON {state_table(self._pgt_id)} ({key})" if key else None

    def _missed(self, after: str, later: str = "", known_later: str = "") -> str:
        """Write the statement that records how emitted windows differ, without what the ledger has already."""
        shown = Storage.of(self.shape.definition, self.shape.hashed)
        window_end = quote(self.column)
        known = KNOWN.format(pgt_id=self._pgt_id, before=BEFORE, later=known_later)
        now, emitted = (
            OF_CLOSED.format(columns=shown.column_list(), rows=rows, window_end=window_end, before=BEFORE, later=later)
            for rows in (f"(\n{after}\n)", shown.table)
        )
        by_rows = self.shape.grouped is None
        return MISSED.format(
            pgt_id=self._pgt_id,
            before=BEFORE,
            window_end=window_end,
            weight=WEIGHT,
            change=self._change(CONTENT),
            difference=shown.difference(now, emitted),
            known_rows=KNOWN_ROWS.format(known=known) if by_rows else "",
            fresh="sum(d.weight) <> 0" if by_rows else NOT_KNOWN.format(known=known),
        )

    def _change(self, name: str) -> str:
        """Write as JSON what the ledger tells of a row: the row itself, or what the keys of its group alone show."""
        if self.shape.grouped is None:
            return f"to_jsonb(g) - '{WEIGHT}'"
        of_row = name in {CHANGES, CONTENT}
        items = (
            f"{exp.Literal.string(key).sql('postgres')}, {f'g.{quote(key)}' if of_row else text}"
            for key, text in shown_by_keys(self.shape).items()
        )
        return f"jsonb_build_object({', '.join(items)})"

    def _end_of(self, name: str) -> str:
        """Write where a staged table has the end of the window: as a column, or computed from the keys of groups."""
        return f"g.{quote(self.column)}" if name in {CHANGES, CONTENT} else shown_by_keys(self.shape)[self.column]


def _has_effect(grouped: Grouped, keyed: bool) -> str:
    """Write whether the increments `g` of a group change anything; those with extrema are taken to do so."""
    if grouped.extrema:
        return "true"
    tests = [column.moves("g") for column in grouped.merged]
    if keyed:
        tests.append(RECOMPUTED.format(keyed=KEYED, same=grouped.match("k", "g")))
    return f"coalesce({' OR '.join(tests)}, false)"


def _columns(text: str) -> set[str]:
    return {column.name for column in parse_query(f"SELECT {text}").find_all(exp.Column)}

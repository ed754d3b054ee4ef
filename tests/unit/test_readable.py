"""Values are short in a prompt and tables in a notebook."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pytrickle.inspect.as_of import AsOf
from pytrickle.readable import Readable, Rows, html_table


@dataclass(frozen=True, slots=True, repr=False)
class Station(Readable):
    """A row like those of the catalog."""

    name: str
    opened: datetime | None
    platforms: int
    lines: tuple[str, ...] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Network(Readable):
    """A value that holds rows."""

    stations: tuple[Station, ...]
    every: timedelta


NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
NORTH, SOUTH = Station("north", NOON, 0), Station("south <b>", None, 2, ("red", "blue"))


def test_what_is_not_set_is_left_out_and_what_is_zero_is_not() -> None:
    assert repr(NORTH) == "Station(name='north', opened=2026-03-02 12:00:00+00:00, platforms=0)"
    assert repr(SOUTH) == "Station(name='south <b>', platforms=2, lines=('red', 'blue'))"


def test_rows_have_a_line_each_and_are_a_tuple() -> None:
    rows = Rows([NORTH, SOUTH])
    assert rows == (NORTH, SOUTH) and isinstance(rows, tuple)
    assert repr(rows) == f"({NORTH!r},\n {SOUTH!r})"
    assert repr(Rows([NORTH])) == f"({NORTH!r},)"
    assert repr(Rows()) == "()"


def test_a_notebook_shows_rows_as_a_table_of_the_columns_that_are_set_somewhere() -> None:
    shown = Rows([NORTH, SOUTH])._repr_html_()
    assert [name for name in ("name", "opened", "platforms", "lines", "note") if f">{name}</th>" in shown] == [
        "name",
        "opened",
        "platforms",
        "lines",
    ]
    assert ">red, blue</td>" in shown and ">0</td>" in shown
    assert Rows()._repr_html_() == "<p>no rows</p>"


def test_what_a_notebook_shows_is_escaped() -> None:
    assert "south &lt;b&gt;" in Rows([SOUTH])._repr_html_() and "<b>" not in Rows([SOUTH])._repr_html_()
    assert "<b>" not in SOUTH._repr_html_() and "<i>" not in html_table(["<i>"], [["<i>"]])


def test_a_value_that_holds_rows_shows_them_below_its_other_fields() -> None:
    shown = Network(Rows([NORTH]), timedelta(minutes=5))._repr_html_()
    assert shown.index("0:05:00") < shown.index("<h4>stations</h4>") < shown.index("north")


def test_one_row_as_of_a_watermark_is_one_row() -> None:
    assert repr(AsOf("public.s", {}, ("a",), ((1,),))) == "AsOf('public.s', 1 row of a)"
    assert "2 rows" in AsOf("public.s", {}, ("a",), ((1,), (2,)))._repr_html_()

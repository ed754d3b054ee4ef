"""The options of the data source: what to read, as of when, and between which versions."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pytrickle.config import Settings
from pytrickle.errors import InvalidArgument
from pytrickle.streaming.dsn import NAMES, dsn_among

_KNOWN = {
    *NAMES,
    *("table", "columns", "partitions", "snapshot", "version", "asof", "group", "feed", "readchangefeed"),
    *("startingversion", "endingversion", "startingtimestamp", "endingtimestamp"),
    *("startingboundinclusive", "endingboundinclusive", "deduplicationmode", "computeupdates", "maxversionspertrigger"),
    "pushfilters",
}
_OF_STREAMS = ("feed", "maxVersionsPerTrigger")
_OF_ENDS = ("endingVersion", "endingTimestamp", "endingBoundInclusive")
_OF_CHANGES = (
    *("startingVersion", "startingTimestamp", "startingBoundInclusive", "deduplicationMode", "computeUpdates"),
    *(*_OF_ENDS, *_OF_STREAMS),
)
_MOST_PARTITIONS = 10_000
_LARGEST = 2**63 - 1
_TRUTH = {"true": True, "false": False}
_MODES = {"none": False, "netchanges": True}


@dataclass(frozen=True, slots=True)
class Bound:
    """Where changes begin or end: at a version or a watermark, and whether its own changes are among them."""

    at: int | datetime | None
    by_version: bool
    inclusive: bool


@dataclass(frozen=True, slots=True)
class Options:
    """What a reader was asked for; the connection string is never shown."""

    dsn: str = field(repr=False)
    table: str
    columns: tuple[str, ...]
    partitions: int | None
    snapshot: str | None
    version: int | None
    as_of: int | datetime | None
    group: str | None
    feed: str | None
    changes: bool
    starting: Bound
    ending: Bound
    net: bool
    updates: bool
    most_versions: int | None
    push_filters: bool

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Options:
        """Read the options of a data source, whose names Spark lowers; raise InvalidArgument for what cannot be."""
        given = _given(options)
        return cls(
            dsn=Settings.from_environment(dsn_among(given.options)).dsn,
            table=given.required("table"),
            columns=given.names("columns"),
            partitions=given.positive("partitions", _MOST_PARTITIONS),
            snapshot=given.text("snapshot"),
            version=given.number("version"),
            as_of=given.watermark("asof"),
            group=given.text("group"),
            feed=given.text("feed"),
            changes=given.truth("readchangefeed", False),
            starting=given.bound("starting"),
            ending=given.bound("ending"),
            net=given.choice("deduplicationmode", _MODES, "none"),
            updates=given.truth("computeupdates", False),
            most_versions=given.positive("maxversionspertrigger"),
            push_filters=given.truth("pushfilters", False),
        ).checked(given)

    def checked(self, given: _Given) -> Options:
        """Return these options; raise InvalidArgument for an unknown one, or some that exclude each other."""
        if unknown := sorted(set(given.options) - _KNOWN):
            raise InvalidArgument(
                f"There is no option {unknown[0]!r}.", f"The options are {', '.join(sorted(_KNOWN))}."
            )
        moments = (self.version, self.as_of, self.snapshot)
        if sum(given is not None for given in moments) > 1:
            raise InvalidArgument("version, asOf and snapshot exclude each other.", "Give one of them.")
        if not self.changes:
            given.refuse(_OF_CHANGES, "is for changes", "Set the option readChangeFeed to true, or leave it out.")
        elif moments != (None, None, None):
            hint = "Changes lie between startingVersion or startingTimestamp and the ends of the same names."
            raise InvalidArgument("version, asOf and snapshot are for reading a table, not its changes.", hint)
        if self.group is not None and self.as_of is None:
            raise InvalidArgument("A group is given without asOf.", "Give the watermark at which its sources agree.")
        if self.changes and self.partitions is not None:
            raise InvalidArgument("Changes are read by one task.", "Leave the option partitions out.")
        return self


def check_batch(options: Mapping[str, str]) -> None:
    """Raise InvalidArgument for an option that only a stream obeys."""
    _given(options).refuse(_OF_STREAMS, "is for streams", "Leave it out: pgtrickle.advance_feed() moves a feed.")


def check_stream(options: Mapping[str, str]) -> None:
    """Raise InvalidArgument for an option that a stream does not obey."""
    _given(options).refuse(_OF_ENDS, "is not for streams", "A stream has no end: stop it, or read a batch.")


def _given(options: Mapping[str, str]) -> _Given:
    return _Given({name.lower(): value for name, value in options.items()})


@dataclass(frozen=True, slots=True)
class _Given:
    options: Mapping[str, str] = field(repr=False)

    def text(self, name: str) -> str | None:
        return self.options.get(name) or None

    def required(self, name: str) -> str:
        if not (value := self.text(name)):
            raise InvalidArgument(f"The option {name} is missing.", "Give the name of a table or stream table.")
        return value

    def number(self, name: str) -> int | None:
        value = self.text(name)
        if value is not None and not (value.isascii() and value.isdigit()):
            raise InvalidArgument(f"{value!r} is not a number for the option {name}.", "Give a whole number.")
        return self.within(name, value, _LARGEST)

    def within(self, name: str, value: str | None, most: int) -> int | None:
        if value is not None and int(value) > most:
            raise InvalidArgument(f"{value} is too large for the option {name}.", f"Give {most} or less.")
        return None if value is None else int(value)

    def positive(self, name: str, most: int = _LARGEST) -> int | None:
        if (value := self.number(name)) == 0:
            raise InvalidArgument(f"0 is too small for the option {name}.", "Give 1 or more, or leave it out.")
        return self.within(name, None if value is None else str(value), most)

    def names(self, name: str) -> tuple[str, ...]:
        """Return names that commas separate; one that has a comma itself stands in double quotes."""
        value = self.text(name)
        names = tuple(each.strip() for each in next(csv.reader([value], skipinitialspace=True))) if value else ()
        if "" in names or len(set(names)) < len(names):
            raise InvalidArgument(f"{value!r} has no name, or one twice, for the option {name}.", "As id, amount.")
        return names

    def refuse(self, names: Sequence[str], why: str, hint: str) -> None:
        if found := [name for name in names if self.text(name.lower())]:
            raise InvalidArgument(f"The option {found[0]} {why}.", hint)

    def watermark(self, name: str) -> int | datetime | None:
        """Return an event time, or the number of a batch, which is nothing but digits."""
        value = self.text(name)
        return self.number(name) if value and value.isascii() and value.isdigit() else self.moment(name)

    def moment(self, name: str) -> datetime | None:
        value = self.text(name)
        try:
            found = None if value is None else datetime.fromisoformat(value)
            if found is not None and found.utcoffset() is None:
                raise InvalidArgument(f"{value!r} has no UTC offset.", "Give it one, such as 2026-03-02T12:00Z.")
            return found and found.astimezone(UTC)
        # The first moments of the year 1 may lie before it in UTC.
        except (ValueError, OverflowError):
            raise InvalidArgument(f"{value!r} is not a time for the option {name}.", "As 2026-03-02T12:00Z.") from None

    def truth(self, name: str, default: bool) -> bool:
        return self.choice(name, _TRUTH, str(default).lower())

    def choice(self, name: str, choices: Mapping[str, bool], default: str) -> bool:
        value = (self.text(name) or default).lower()
        if value not in choices:
            raise InvalidArgument(f"{value!r} is no value for the option {name}.", f"Give {' or '.join(choices)}.")
        return choices[value]

    def bound(self, side: str) -> Bound:
        version, moment = self.number(f"{side}version"), self.watermark(f"{side}timestamp")
        if version is not None and moment is not None:
            raise InvalidArgument(f"{side}Version and {side}Timestamp exclude each other.", "Give one of them.")
        inclusive = self.truth(f"{side}boundinclusive", True)
        return Bound(moment if version is None else version, version is not None, inclusive)

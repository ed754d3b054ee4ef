"""Queries that others wrote as stream tables: python -m tests.equivalence.strangers DIRECTORY SCRIPT [SCRIPT ...].

DIRECTORY is src/test/regress of PostgreSQL's source. Each query of the scripts, over the database as the script has
made it by then, becomes a stream table that is compared after its first load and after each of four rounds of changes.
"""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from tests.equivalence.__main__ import _server, _session
from tests.equivalence.strangers.play import Player
from tests.equivalence.strangers.played import BROKEN, Played
from tests.servers import OLDEST


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.equivalence.strangers", description=__doc__)
    parser.add_argument("directory", type=Path, help="src/test/regress of PostgreSQL's source")
    parser.add_argument("scripts", nargs="+", help="names of scripts, such as join or window")
    parser.add_argument("--results", type=Path, default=os.devnull, help="where to append one JSON object per query")
    parser.add_argument("--only", default="", help="play only the queries that contain this text")
    parser.add_argument("--first", type=int, default=1, help="number of the first query of a script to play")
    parser.add_argument("--last", type=int, default=sys.maxsize, help="number of the last query of a script to play")
    parser.add_argument("--equal-in", type=Path, help="play only what these results of another run show as equal")
    parser.add_argument("--spark", action="store_true", help="refresh through Spark rather than the tests' own engine")
    parser.add_argument("--small-delta-rows", type=int, default=20_000, help="0 lets the engine join all deltas it can")
    return parser.parse_args()


def equal_in(results: Path | None) -> frozenset[tuple[str, str]] | None:
    """Return which queries a run has shown as equal, by script and text; None, which is all, without its results."""
    if results is None:
        return None
    records = [json.loads(line) for line in results.read_text().splitlines()]
    return frozenset((record["file"], record["query"]) for record in records if record["status"] == "equal")


def written(found: Iterable[Played], results: Path) -> Iterator[Played]:
    """Append each query to the results as soon as it is played: a run through Spark may be ended before its end."""
    with results.open("a") as file:
        for played in found:
            print(json.dumps(asdict(played)), file=file, flush=True)
            yield played


def _tell(played: list[Played]) -> int:
    print(", ".join(f"{status}: {number}" for status, number in Counter(each.status for each in played).most_common()))
    fed = [each for each in played if set(each.actions[1:]) - {"NO_DATA"}]
    print(f"{sum(each.is_differential for each in fed)} of {len(fed)} with changes were differential in every round")
    broken = [each for each in played if each.status in BROKEN]
    for each in broken:
        print(f"\n-- {each.file}: {each.status} {each.actions}: {each.detail}\n{each.query}")
    return bool(broken)


def main() -> int:
    """Play the scripts; return 1 where a stream table differs, fails, or breaks a tick."""
    arguments = _arguments()
    played: list[Played] = []
    with _server(OLDEST) as server, _session(arguments.spark) as session:
        chosen = (arguments.only, arguments.first, arguments.last, equal_in(arguments.equal_in))
        player = Player(server, arguments.directory, session, arguments.small_delta_rows, *chosen)
        player.prepare()
        for name in arguments.scripts:
            found = list(written(player.play_script(name), arguments.results))
            print(f"{name}: {dict(Counter(each.status for each in found))}", flush=True)
            played += found
    return _tell(played)


if __name__ == "__main__":
    sys.exit(main())

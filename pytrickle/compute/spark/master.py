"""Where the masters of a standalone cluster are, and whether one of them answers: Spark itself waits long to say so."""

import re
import socket

from pytrickle.errors import SparkFailed

PATIENCE = 5.0
ADDRESS = re.compile(r"\[?([^\[\],]+)\]?:(\d+)(?:,|$)")


def standalone_masters(master: str) -> list[tuple[str, int]]:
    """Return host and port of each master that a URL names; none where it is not one of a standalone cluster.

    >>> standalone_masters("spark://one:7077,[::1]:7078"), standalone_masters("local[*]")
    ([('one', 7077), ('::1', 7078)], [])
    """
    scheme, _, addresses = master.partition("://")
    named = ADDRESS.findall(addresses) if scheme == "spark" else []
    return [(host, int(port)) for host, port in named]


def require_master(master: str) -> None:
    """Raise SparkFailed if this is a standalone cluster of which no master takes a connection."""
    masters = standalone_masters(master)
    found = [_refusal(host, port) for host, port in masters]
    if masters and None not in found:
        raise SparkFailed(
            f"The Spark session could not be started: no master answers at {master}: {found[0]}.",
            "Nothing was changed. Start the master, or name another one in the setting spark_master"
            " (PYTRICKLE_SPARK_MASTER).",
        )


def _refusal(host: str, port: int) -> str | None:
    """Say why nobody can be reached there; None if somebody can."""
    try:
        with socket.create_connection((host, port), PATIENCE):
            return None
    except OSError as error:
        return error.strerror or str(error)

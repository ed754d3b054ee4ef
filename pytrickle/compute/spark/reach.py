"""Whether Spark reaches the database: what is certain to fail is said before, and the rest in one sentence."""

import re
import socket

from pytrickle.compute.spark.master import standalone_masters
from pytrickle.database import TOO_MANY_CONNECTIONS, JdbcTarget, hint_of_server, lacks_connections
from pytrickle.errors import DatabaseOutOfReach, SparkCannotConnect

# What every attempt of the driver to open a connection passes through.
OPENING = "at org.postgresql.core.ConnectionFactory.openConnection"
LOST = re.compile(r"Lost task [\d.]+ in stage")
NETWORK = re.compile(r"^Caused by: java\.net\.(\w+): (.*\S)", re.MULTILINE)

UNABLE_TO_CONNECT = "08001"

EXECUTORS_HINT = (
    "Nothing was changed. Executors connect by themselves: the address of the DSN must lead to the server from every"
    " worker, and the firewall and pg_hba.conf must let them pass."
)
DRIVER_HINT = (
    "Nothing was changed. Spark connects through TCP: listen_addresses, the firewall and pg_hba.conf must let it pass."
)
POOLER_HINT = (
    "Nothing was changed. PgBouncer lets nobody in who says at the login under which settings to read: give the"
    " refresher an address of the server itself, or compute without Spark, by the engine postgres."
)


def check_reach(target: JdbcTarget, master: str) -> None:
    """Raise DatabaseOutOfReach where the database's address would lead executors elsewhere to themselves."""
    if target.is_loopback and _is_elsewhere(master):
        raise DatabaseOutOfReach(
            f"The executors of {master} cannot reach the database at {target.host}: there, that is their own machine."
        )


def _is_elsewhere(master: str) -> bool:
    """Whether no executor shares this machine's own address: pods never do, workers only beside a master that does."""
    if master.startswith("k8s://"):
        return True
    masters = standalone_masters(master)
    return bool(masters) and not any(_is_here(host) for host, _ in masters)


def _is_here(host: str) -> bool:
    """Whether a name is one of this machine's; so is one that nobody knows, for that is another's failure to report."""
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except OSError:
        return True
    return any(_is_own(family, address) for family, _, _, _, address in found)


def _is_own(family: socket.AddressFamily, address: tuple[object, ...]) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        try:
            listener.bind(address)
        except OSError:
            return False
    return True


def cannot_connect(message: str, sentence: str) -> SparkCannotConnect | None:
    """Return the error for what Spark says where the driver could not open a connection, with the driver's sentence.

    >>> said = f"Lost task 0.3 in stage 0.0: Connection to db:5432 refused.\\n\\t{OPENING}(ConnectionFactory.java:5)"
    >>> str(cannot_connect(said, "Connection to db:5432 refused."))
    "Spark's executors cannot connect to the database: Connection to db:5432 refused."
    >>> cannot_connect(OPENING, "FATAL: unsupported startup parameter: search_path").hint == POOLER_HINT
    True
    >>> cannot_connect(OPENING, "FATAL: sorry, too many clients already").hint.partition(":")[0]
    'Nothing was changed. The server lends no further connection'
    """
    if OPENING not in message:
        return None
    network = NETWORK.search(message)
    why = f"{sentence} ({network[1]}: {network[2]})" if network and network[2] not in sentence else sentence
    who, hint = ("Spark's executors", EXECUTORS_HINT) if LOST.search(message) else ("Spark", DRIVER_HINT)
    hint = POOLER_HINT if "unsupported startup parameter" in sentence else hint
    if of_server := hint_of_server(sentence):
        hint = f"Nothing was changed. {of_server}"
    sqlstate = TOO_MANY_CONNECTIONS if lacks_connections(sentence) else UNABLE_TO_CONNECT
    return SparkCannotConnect(f"{who} cannot connect to the database: {why}", hint, sqlstate=sqlstate)

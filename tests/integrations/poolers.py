"""PgBouncer before a test's server, in one of its pool modes."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from testing.common.database import get_unused_port

from tests.integrations.environments import debian_program
from tests.waiting import wait_for

SETTINGS = """
[databases]
* = host=127.0.0.1 port={server} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
logfile = {folder}/log
"""


@contextmanager
def pgbouncer(dsn: str, mode: str, *further: str) -> Iterator[str]:
    """Run a pooler for the length of the block; yield the DSN of the same database through it."""
    libraries = [debian_program(package, "usr/lib") for package in ("libevent-2.1-7", "libc-ares2")]
    program = debian_program("pgbouncer", "usr/sbin/pgbouncer")
    paths = [str(path) for library in libraries for path in library.glob("*-linux-gnu*")]
    given, port = conninfo_to_dict(dsn), get_unused_port()
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        written = SETTINGS.format(server=given["port"], port=port, mode=mode, folder=folder) + "\n".join(further)
        (settings := Path(folder, "settings.ini")).write_text(f"{written}\n")
        account = ["-u", "nobody"] if os.geteuid() == 0 else []
        environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(paths)}
        command = [program, "-q", *account, settings]
        with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as running:
            try:
                pooled = make_conninfo(dsn, port=port)
                wait_for(lambda: _answers(pooled), "PgBouncer")
                yield pooled
            finally:
                running.terminate()


def _answers(dsn: str) -> bool:
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError:
        return False
    return True

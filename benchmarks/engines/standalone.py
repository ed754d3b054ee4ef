"""A standalone cluster of Spark on this machine: a master and its workers, each a process of its own."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

SPARK_CLASS = Path(pyspark.__file__).with_name("bin") / "spark-class"
EXECUTOR = b"CoarseGrainedExecutorBackend"
PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """The address of a master, and the processes: its own first, then those of the workers; `add_worker` starts one."""

    master: str
    add_worker: Callable[[], None]
    processes: list[subprocess.Popen[bytes]]

    def executors(self) -> list[int]:
        """Find the process ids of the executors, which share the process group of the worker that started them."""
        groups = {process.pid for process in self.processes[1:]}
        executors = [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if _runs(entry, EXECUTOR)]
        return [pid for pid in executors if os.getpgid(pid) in groups]


@contextmanager
def standalone_cluster(home: Path, workers: int, memory: str = "1g") -> Iterator[Cluster]:
    """Start a master and so many workers of one core each; they log into `home` and end with the block."""
    port = _free_port()
    with ExitStack() as stack:
        master, processes = f"spark://127.0.0.1:{port}", list[subprocess.Popen[bytes]]()
        start = _starter(stack, home, processes)
        options = ("--host", "127.0.0.1", "--cores", "1", "--memory", memory, "--webui-port", "0")
        cluster = Cluster(master, lambda: start("Worker", *options, master), processes)
        start("Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        _wait_for(port)
        for _ in range(workers):
            cluster.add_worker()
        yield cluster


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill one of the cluster's processes and what it has started, unless that has ended."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=20)


def _starter(stack: ExitStack, home: Path, processes: list[subprocess.Popen[bytes]]) -> Callable[..., None]:
    own = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(home), "SPARK_LOG_DIR": str(home)}

    def start(role: str, *arguments: str) -> None:
        command = [str(SPARK_CLASS), f"org.apache.spark.deploy.{role.lower()}.{role}", *arguments]
        log = stack.enter_context((home / f"{role}{len(processes)}.log").open("wb"))
        process = subprocess.Popen(command, env=own, stdout=log, stderr=log, start_new_session=True)
        stack.callback(kill, process)
        processes.append(process)

    return start


def _runs(entry: Path, program: bytes) -> bool:
    try:
        return program in (entry / "cmdline").read_bytes()
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait_for(port: int) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        if time.monotonic() > end:
            raise TimeoutError("The master does not listen; see its log.")
        time.sleep(0.1)

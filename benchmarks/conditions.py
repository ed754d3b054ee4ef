"""The conditions of a measurement: machine, versions and server settings."""

import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import psycopg
from pyspark.sql import SparkSession

REPORTED_SETTINGS = (
    "shared_buffers",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_level",
    "max_wal_size",
    "checkpoint_timeout",
    "effective_cache_size",
    "work_mem",
    "maintenance_work_mem",
    "random_page_cost",
    "max_parallel_workers_per_gather",
    "jit",
    "autovacuum",
)


def conditions(connection: psycopg.Connection, spark: SparkSession, load: float) -> dict[str, str]:
    """Return everything a reader needs to judge the figures, in the order it is printed."""
    return {
        **machine(load, "PostgreSQL, Spark and the benchmark share it"),
        **server_conditions(connection),
        "Spark": f"{spark.version}, `{spark.conf.get('spark.master')}`, Java {_java_version()}",
        "Python": f"{platform.python_version()}, psycopg {psycopg.__version__}",
    }


def server_conditions(connection: psycopg.Connection) -> dict[str, str]:
    """Return the server's version, and the settings that matter to its speed."""
    settings = ", ".join(f"`{name} = {_setting(connection, name)}`" for name in REPORTED_SETTINGS)
    return {"PostgreSQL": f"{_setting(connection, 'server_version')}, {settings}"}


def machine(load: float, shared: str) -> dict[str, str]:
    """Return when and where something was measured, who shared the machine, and what else it had to do."""
    return {
        "Date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "Machine": f"{os.cpu_count()} cores ({_processor()}), {_memory_gib():.0f} GiB of memory, {platform.system()}"
        f" {platform.release()}; {shared}",
        "Other load": f"a load average of {load:.1f} over the minute before the run",
    }


def _setting(connection: psycopg.Connection, name: str) -> str:
    row = connection.execute("SELECT current_setting(%s)", [name]).fetchone()
    assert row is not None
    return str(row[0])


def _java_version() -> str:
    output = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    match = re.search(r'"([^"]+)"', output)
    return match[1] if match else "unknown"


def _processor() -> str:
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text().splitlines() if file.exists() else []

"""What Spark needs on the machine: PySpark, a Java runtime and PostgreSQL's JDBC driver."""

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from pytrickle.errors import JavaMissing, JdbcDriverMissing, PackageMissing

MINIMUM_JAVA = 17
SYSTEM_JARS = (
    "/usr/share/java/postgresql.jar",
    "/usr/share/java/postgresql-jdbc.jar",
    "/usr/share/pgjdbc/postgresql.jar",
)
MAVEN_COORDINATE = "org.postgresql:postgresql:42.7.8"
INSTALL = "Install it: pip install 'pytrickle-postgres[spark]'. Or let PostgreSQL compute: --engine postgres."


def has_spark() -> bool:
    """Whether PySpark is installed, without loading it."""
    return find_spec("pyspark") is not None


def require_spark() -> None:
    """Raise PackageMissing where PySpark is not installed."""
    if not has_spark():
        raise PackageMissing("Spark is to compute this, and PySpark is not installed.", INSTALL)


def java_program() -> str:
    """Return the path of the Java runtime that Spark will use; raise JavaMissing if there is none."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None:
        raise JavaMissing("No Java runtime was found.")
    return program


def find_java() -> str:
    """Return the version line of the Java runtime that Spark will use; raise JavaMissing if there is none fit."""
    program = java_program()
    try:
        shown = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise JavaMissing(f"{program} does not start.") from error
    found = re.search(r'version "(?:1\.)?(\d+)', shown)
    if found is None or int(found.group(1)) < MINIMUM_JAVA:
        raise JavaMissing(f"Spark needs Java {MINIMUM_JAVA} or later, {program} is older.")
    return shown.splitlines()[0]


def find_jdbc_jar(setting: str | None = None) -> str | None:
    """Return the path of the JDBC driver: the setting, PYTRICKLE_JDBC_JAR, or where systems keep it; else None.

    Raise JdbcDriverMissing when an explicit path does not exist.
    """
    explicit = setting or os.environ.get("PYTRICKLE_JDBC_JAR")
    if explicit:
        if not Path(explicit).is_file():
            raise JdbcDriverMissing(f"There is no JDBC driver at {explicit}.")
        return explicit
    return next((path for path in SYSTEM_JARS if Path(path).is_file()), None)

"""The archive of the classes that Spark's Java has loaded: with it, later processes start Spark in less time.

Java maps the archive into memory instead of reading jars. It takes no notice of one that another Java, or other jars,
have written, or that is damaged; all that tells them apart is in the archive's name, so that there is one of each.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from pytrickle.compute.spark.java import find_java, find_jdbc_jar, java_program
from pytrickle.config import Settings

# What users may give Java by themselves, and what changes where Spark and its jars are.
GIVEN = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
PLACES = ("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH", "HADOOP_CONF_DIR", "PYSPARK_SUBMIT_ARGS")
# Else Java warns of an archive that does not fit, on its output.
QUIET = "-Xlog:cds*=off"
# Archives of Javas and Sparks that were replaced stay behind.
UNUSED = 30 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """Where the archive is, or will be, that fits this machine's Java, Spark and JDBC driver."""

    path: Path

    @property
    def exists(self) -> bool:
        """Whether it was written."""
        return self.path.is_file()

    @property
    def use(self) -> str:
        """Java's options for a start from the archive; a damaged one is found by its checksums."""
        return f'-XX:SharedArchiveFile="{self.path}" -XX:+VerifySharedSpaces {QUIET}'

    def writing(self, beside: Path) -> str:
        """Return Java's options to write an archive as it ends."""
        return f'-XX:ArchiveClassesAtExit="{beside}" {QUIET}'

    def touch(self) -> None:
        """Note that the archive is used, and remove those that have not been for a month."""
        os.utime(self.path)
        for other in self.path.parent.iterdir():
            if other.stat().st_mtime < time.time() - UNUSED:
                other.unlink(missing_ok=True)


def class_archive(settings: Settings) -> ClassArchive | None:
    """Return the archive for this machine; None where there shall be none, or no directory that is the user's alone.

    Raise JavaMissing or JdbcDriverMissing where Spark could not start either.
    """
    java, jar = find_java(), find_jdbc_jar(settings.jdbc_jar)
    directory = archive_directory() if settings.class_archive and not is_given() else None
    return ClassArchive(directory / f"{_fingerprint(java, jar)}.jsa") if directory else None


def is_given() -> bool:
    """Whether the user has told Java about archives already."""
    return any(word in os.environ.get(name, "") for name in GIVEN for word in ("Archive", "-Xshare"))


def archive_directory() -> Path | None:
    """Return the directory of archives, made where it is missing; None unless it can be trusted.

    Java runs what is in an archive, so nobody else may write there.
    """
    try:
        directory = _cache() / "pytrickle"
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = directory.lstat()
    except (OSError, RuntimeError):
        return None
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
    # Java would take a colon for the end of the path, and its launcher a quotation mark.
    return directory if own and not set(':"\\') & set(str(directory)) else None


def _cache() -> Path:
    """Return the directory of the user's caches; a relative path in XDG_CACHE_HOME is to be ignored, it is said."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return given if given.is_absolute() else Path.home() / ".cache"


def _fingerprint(java: str, jar: str | None) -> str:
    return hashlib.sha256("\n".join(_told_apart(java, jar)).encode()).hexdigest()[:32]


def _told_apart(java: str, jar: str | None) -> Iterator[str]:
    yield from (java, os.path.realpath(java_program()), version("pyspark"))
    spark = find_spec("pyspark")
    home = os.environ.get("SPARK_HOME") or str(Path(spark.origin or "").parent if spark else "")
    for path in (f"{home}/jars", jar or ""):
        found = Path(path)
        yield f"{path} {found.stat().st_mtime_ns if path and found.exists() else None}"
    for name in (*GIVEN, *PLACES):
        yield os.environ.get(name, "")

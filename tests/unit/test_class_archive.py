"""The archive of Spark's classes: where it is kept, what it is told apart by, and when there is none."""

import os
import time
from pathlib import Path

import pytest

from pytrickle.compute.spark.class_archive import ClassArchive, class_archive
from pytrickle.config import Settings
from pytrickle.errors import ConfigError
from pytrickle.inspect.doctor.spark import find_archive

BEFORE = time.time() - 40 * 24 * 3600


@pytest.fixture
def caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The directory of a user's caches, in which no option of Java is set."""
    monkeypatch.delenv("SPARK_SUBMIT_OPTS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def archive(**settings: object) -> ClassArchive:
    found = class_archive(Settings(**settings))  # type: ignore[arg-type]
    assert found is not None
    return found


def test_an_archive_is_where_only_its_user_reads(caches: Path) -> None:
    directory = archive().path.parent
    assert directory == caches / "pytrickle"
    assert directory.stat().st_mode & 0o777 == 0o700
    assert find_archive(Settings()).startswith("none yet")
    archive().path.write_bytes(bytes(3 << 20))
    assert find_archive(Settings()) == f"{archive().path}, 3 MB"


def test_other_jars_and_other_options_have_an_archive_of_their_own(
    caches: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    jars = [tmp_path / "a.jar", tmp_path / "b.jar"]
    for jar in jars:
        jar.touch()
    found = [archive(), *(archive(jdbc_jar=str(jar)) for jar in jars)]
    os.utime(jars[0], (BEFORE, BEFORE))
    found.append(archive(jdbc_jar=str(jars[0])))
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-XX:+UseSerialGC")
    found.append(archive())
    assert len(set(found)) == len(found)
    assert archive() == found[-1]


def test_a_directory_in_which_others_may_write_is_not_trusted(caches: Path) -> None:
    (caches / "pytrickle").mkdir()
    (caches / "pytrickle").chmod(0o770)
    assert class_archive(Settings()) is None
    assert "nobody else may write" in find_archive(Settings())


def test_no_directory_is_no_error(caches: Path) -> None:
    (caches / "pytrickle").touch()
    assert class_archive(Settings()) is None


def test_the_setting_switches_it_off(caches: Path) -> None:
    settings = Settings.from_environment(environ={"PYTRICKLE_CLASS_ARCHIVE": "off"})
    assert class_archive(settings) is None
    assert "class_archive" in find_archive(settings)
    assert Settings.from_environment(environ={}, class_archive=True).class_archive
    with pytest.raises(ConfigError, match="maybe"):
        Settings.from_environment(environ={"PYTRICKLE_CLASS_ARCHIVE": "maybe"})


def test_options_of_java_that_name_an_archive_are_left_alone(caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:SharedArchiveFile=/somewhere.jsa")
    assert class_archive(Settings()) is None
    assert "environment" in find_archive(Settings())


def test_archives_that_nobody_used_for_a_month_are_removed(caches: Path) -> None:
    used, unused = archive(), archive(jdbc_jar=__file__)
    for each in (used, unused):
        each.path.touch()
        os.utime(each.path, (BEFORE, BEFORE))
    used.touch()
    assert (used.exists, unused.exists) == (True, False)

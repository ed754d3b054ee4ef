"""What Java writes goes to a logger, and into the error where Spark cannot be started; how it ended is told."""

import logging
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytrickle.compute.spark.gateway import how_java_ended
from pytrickle.compute.spark.session import build_session
from pytrickle.config import Settings
from pytrickle.errors import SparkFailed

# A Java that knows its version, and else complains and ends.
JAVA = """#!/bin/sh
[ "$1" = -version ] && { echo 'openjdk version "21.0.1"' >&2; exit; }
echo "WARNING: of no interest" >&2
echo "Unrecognized VM option 'Sputnik'" >&2
exit 1
"""


# Spark's own library leaves the pipe to a Java that ended open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_java_that_does_not_start_is_told_in_the_error_and_not_on_stderr(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(JAVA)
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    caplog.set_level(logging.DEBUG, "pytrickle.spark")
    with pytest.raises(SparkFailed, match="Unrecognized VM option 'Sputnik'"):
        build_session(Settings())
    assert capfd.readouterr().err == ""
    assert "WARNING: of no interest" in [record.getMessage() for record in caplog.records]
    assert {record.name for record in caplog.records} == {"pytrickle.spark.java"}


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("sys.exit(52)", "with exit code 52 (out of memory)"),
        ("sys.exit(50)", "with exit code 50 (a fatal error)"),
        ("sys.exit(0)", "with exit code 0"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "by signal 9"),
    ],
)
def test_how_a_java_ended_is_told(monkeypatch: pytest.MonkeyPatch, end: str, told: str) -> None:
    with subprocess.Popen([sys.executable, "-c", f"import os, signal, sys; {end}"]) as process:
        monkeypatch.setattr("pyspark.SparkContext._gateway", SimpleNamespace(proc=process))
        assert how_java_ended() == told


def test_a_java_that_runs_has_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytrickle.compute.spark.gateway.PATIENCE", 0.01)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        monkeypatch.setattr("pyspark.SparkContext._gateway", SimpleNamespace(proc=process))
        assert how_java_ended() is None
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.parametrize("port", ["1234", "none"])
def test_the_port_of_a_java_that_cannot_be_reached_is_told_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, port: str
) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", port)
    monkeypatch.delenv("PYSPARK_GATEWAY_SECRET", raising=False)
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    with pytest.raises(SparkFailed, match="PYSPARK_GATEWAY_PORT") as failure:
        build_session(Settings())
    assert "Unset" in str(failure.value.hint)

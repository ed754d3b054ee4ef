"""Settings come from arguments, then the environment, then the defaults."""

from datetime import timedelta

import pytest

from pytrickle.config import Settings
from pytrickle.errors import ConfigError


def test_argument_beats_environment_beats_default() -> None:
    environ = {"PYTRICKLE_SPARK_MASTER": "local[2]", "PYTRICKLE_SMALL_DELTA_ROWS": "7"}
    settings = Settings.from_environment(spark_master="local[1]", environ=environ)
    assert settings.spark_master == "local[1]"
    assert settings.small_delta_rows == 7
    assert settings.poll_interval == timedelta(seconds=1)


def test_none_counts_as_not_given() -> None:
    environ = {"PYTRICKLE_DSN": "host=a"}
    assert Settings.from_environment(None, jdbc_jar=None, environ=environ).dsn == "host=a"
    assert Settings.from_environment(environ={}).dsn == ""


def test_poll_interval_is_read_in_seconds() -> None:
    assert Settings.from_environment(environ={"PYTRICKLE_POLL_INTERVAL": "0.5"}).poll_interval == timedelta(seconds=0.5)
    assert Settings.from_environment(poll_interval=timedelta(minutes=1), environ={}).poll_interval.seconds == 60


@pytest.mark.parametrize(
    "given",
    [
        {"poll_interval": "soon"},
        {"poll_interval": 0},
        {"poll_interval": float("nan")},
        {"small_delta_rows": "many"},
        {"small_delta_rows": -1},
        {"colour": "red"},
    ],
    ids=str,
)
def test_wrong_setting_is_refused_with_a_hint(given: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as refusal:
        Settings.from_environment(environ={}, **given)
    assert refusal.value.hint


@pytest.mark.parametrize(("name", "value", "right"), [("engine", "duckdb", "spark"), ("poll_interval", "soon", "1")])
def test_a_wrong_setting_from_the_environment_is_refused_with_its_variable(name: str, value: str, right: str) -> None:
    variable = f"PYTRICKLE_{name.upper()}"
    with pytest.raises(ConfigError, match=value) as refused:
        Settings.from_environment(environ={variable: value})
    assert str(refused.value.hint).endswith(f" It was read from {variable}.")
    Settings.from_environment(environ={variable: value}, **{name: right})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("small_delta_rows", "1.5", "It must be a whole number."),
        ("poll_interval", "x", "It must be a number."),
        ("statement_timeout", "0", "from a millisecond to 24 days"),
        ("statement_timeout", "99999999999", "from a millisecond to 24 days"),
        ("statement_timeout", "0.0001", "from a millisecond to 24 days"),
    ],
)
def test_a_wrong_number_is_told_what_it_must_be(name: str, value: str, said: str) -> None:
    """PostgreSQL would refuse a longer timeout at each refresh, and has no limit for a shorter one."""
    with pytest.raises(ConfigError) as refused:
        Settings.from_environment(environ={f"PYTRICKLE_{name.upper()}": value})
    assert said in f"{refused.value} {refused.value.hint}"


def test_password_is_not_shown() -> None:
    assert "secret" not in repr(Settings(dsn="postgresql://me:secret@host/db"))

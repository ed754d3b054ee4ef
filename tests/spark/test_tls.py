"""TLS and logins: what libpq is told holds for Spark's connections as well, or Spark does not connect."""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pytrickle.compute.spark.jdbc import FETCH_SIZE
from pytrickle.compute.spark.run import translated
from pytrickle.database import JdbcTarget, connect, jdbc_target
from pytrickle.database.jdbc_tls import tls_properties
from pytrickle.errors import ConfigError, ConnectionLost, SparkFailed
from tests.certificates import KEY_PASSWORD, make_certificates
from tests.repeats import first
from tests.servers import OLDEST, Server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PASSWORD = "s3cr3t-of-the-loader"
RULES = (
    "hostssl all loader 127.0.0.1/32 scram-sha-256 clientcert=verify-full",
    "hostssl all plain 127.0.0.1/32 scram-sha-256",
)
Address = Callable[..., str]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def port(certificates: Path) -> Iterator[str]:
    """The port of a server with TLS, where the role loader needs its certificate and both roles their password."""
    server = Server(OLDEST)
    try:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            for role in ("loader", "plain"):
                connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'".encode())
            port = str(connection.info.port)
        server.secure(certificates, RULES)
        yield port
    finally:
        server.stop()


@pytest.fixture
def address(certificates: Path, port: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Address:
    """Return how to make a connection string; home is an empty directory."""
    monkeypatch.setenv("HOME", str(tmp_path))

    def made(user: str = "loader", certificate: str | None = "loader", **options: str) -> str:
        own = {} if certificate is None else {"sslcert": f"{certificate}.crt", "sslkey": f"{certificate}.key"}
        given = {"sslmode": "verify-full", "sslrootcert": "ca.crt", "password": PASSWORD, **own, **options}
        files = {name: value for name, value in given.items() if name in FILES and value not in ("", "system")}
        given |= {name: str(certificates / value) for name, value in files.items()}
        return make_conninfo(**{"host": "localhost", "port": port, "user": user, "dbname": "postgres", **given})

    return made


FILES = ("sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir")


def by_spark(spark: SparkSession, target: JdbcTarget, *pin: str) -> list[tuple[str, bool]]:
    """Return as whom Spark is connected, and whether by TLS; raise what keeps it from being."""
    reader = spark.read.format("jdbc").options(url=target.url, fetchsize=FETCH_SIZE, **target.properties)
    query = "SELECT usename::text, ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE pid = pg_backend_pid()"
    with translated():
        rows = reader.option("sessionInitStatement", "; ".join(pin)).option("query", query).load().collect()
    return [tuple(row) for row in rows]


def target_of(dsn: str) -> JdbcTarget:
    """Return where Spark would connect if libpq did, too."""
    options = {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value}
    properties = tls_properties(options, Path.home(), through_socket=False)
    login = {"user": options["user"], "password": options["password"], "driver": "org.postgresql.Driver"}
    return JdbcTarget(f"jdbc:postgresql://{options['host']}:{options['port']}/postgres", {**properties, **login})


@pytest.mark.parametrize(
    "options",
    first(
        6,
        (
            {},
            {"sslmode": "verify-ca", "host": "127.0.0.1"},
            {"sslmode": "verify-ca", "hostaddr": "127.0.0.1", "host": "db.example"},
            {"hostaddr": "127.0.0.1"},
            {"sslmode": "require", "sslrootcert": ""},
            {"certificate": "locked", "sslpassword": KEY_PASSWORD},
            {"user": "plain", "certificate": None},
            {"host": "127.0.0.1,localhost", "target_session_attrs": "read-write"},
            {"ssl_min_protocol_version": "TLSv1.2", "ssl_max_protocol_version": "TLSv1.3"},
            {"channel_binding": "prefer", "sslcertmode": "allow", "gssencmode": "disable"},
            {"sslcrl": "nowhere.crl"},
        ),
    ),
    ids=lambda options: " ".join(f"{name}={value}" for name, value in options.items()) or "verify-full",
)
def test_psycopg_and_spark_both_connect_by_tls(address: Address, spark: SparkSession, options: dict[str, str]) -> None:
    with connect(address(**options)) as connection:
        assert connection.pgconn.ssl_in_use
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        ((snapshot,),) = connection.execute("SELECT pg_export_snapshot()").fetchall()
        pin = ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", f"SET TRANSACTION SNAPSHOT '{snapshot}'")
        assert by_spark(spark, jdbc_target(connection), *pin) == [(options.get("user", "loader"), True)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sslrootcert": "other.crt"}, "unable to find valid certification path"),
        ({"sslmode": "require", "sslrootcert": "other.crt"}, "unable to find valid certification path"),
        ({"host": "127.0.0.1"}, "could not be verified"),
        ({"sslrootcert": "nowhere.crt"}, "Could not open SSL root certificate"),
        ({"sslrootcert": "system"}, "unable to find valid certification path"),
        ({"certificate": None}, "connection requires a valid client certificate"),
        ({"sslcertmode": "disable"}, "connection requires a valid client certificate"),
        ({"certificate": "revoked"}, ""),
        ({"certificate": "locked", "sslpassword": "wrong"}, "Could not decrypt SSL key file"),
        ({"sslmode": "disable"}, "no pg_hba.conf entry"),
        ({"password": "wrong"}, "password authentication failed"),
    ],
    ids=lambda value: " ".join(f"{n}={v}" for n, v in value.items()) if isinstance(value, dict) else "",
)
def test_psycopg_and_spark_both_refuse(
    address: Address, spark: SparkSession, options: dict[str, str], said: str
) -> None:
    if options.get("sslrootcert") == "system":
        options = {**options, "user": "plain", "certificate": None}
    dsn = address(**options)
    with pytest.raises((ConfigError, ConnectionLost)) as refused:
        connect(dsn)
    with pytest.raises(SparkFailed) as failed:
        by_spark(spark, target_of(dsn))
    assert said in str(failed.value)
    for error in (refused.value, failed.value):
        assert not [secret for secret in (PASSWORD, KEY_PASSWORD) if secret in shown(error)]


def shown(error: BaseException) -> str:
    """Return all that a reader of a log may see of an error."""
    return "".join(traceback.format_exception(error))


def test_the_authority_that_libpq_finds_by_itself_holds_for_spark(
    address: Address, spark: SparkSession, certificates: Path
) -> None:
    """libpq verifies under `require` where a default file is there; Java's home is not ours, so the file is named."""
    default = Path.home() / ".postgresql"
    default.mkdir()
    dsn = address(sslmode="require", sslrootcert="")
    shutil.copy(certificates / "ca.crt", default / "root.crt")
    with connect(dsn) as connection:
        assert by_spark(spark, jdbc_target(connection)) == [("loader", True)]
    shutil.copy(certificates / "other.crt", default / "root.crt")
    with pytest.raises(ConnectionLost, match="certificate verify failed"):
        connect(dsn)
    with pytest.raises(SparkFailed):
        by_spark(spark, target_of(dsn))


@pytest.mark.parametrize(
    ("options", "lacking"),
    [
        ({"channel_binding": "require"}, "binds no login"),
        ({"require_auth": "scram-sha-256"}, "cannot insist on a way to log in"),
        ({"require_auth": "!password"}, "cannot insist on a way to log in"),
        ({"ssl_min_protocol_version": "TLSv1.3"}, "takes TLS 1.2 as well"),
        ({"sslcertmode": "require"}, "cannot insist on being asked"),
        ({"sslcrl": "clients.crl"}, "reads no list of revoked certificates"),
        ({"sslcrldir": "lists"}, "reads no list of revoked certificates"),
        ({"sslmode": "require", "sslcrl": "clients.crl"}, "reads no list of revoked certificates"),
    ],
    ids=lambda value: " ".join(f"{n}={v}" for n, v in value.items()) if isinstance(value, dict) else "",
)
def test_what_the_driver_would_not_obey_is_refused_with_the_reason(
    address: Address, options: dict[str, str], lacking: str
) -> None:
    with connect(address(**options)) as connection, pytest.raises(ConfigError, match=lacking) as refused:
        jdbc_target(connection)
    assert refused.value.hint
    assert list(options)[-1] in str(refused.value)


def test_a_revoked_server_is_refused_by_libpq_and_the_list_by_spark(address: Address) -> None:
    dsn = address(sslcrl="servers.crl")
    with pytest.raises(ConnectionLost, match="certificate verify failed"):
        connect(dsn)
    with pytest.raises(ConfigError, match="revoked"):
        target_of(dsn)


def test_the_list_of_revoked_certificates_that_libpq_finds_by_itself_is_refused(
    address: Address, certificates: Path
) -> None:
    default = Path.home() / ".postgresql"
    default.mkdir()
    shutil.copy(certificates / "clients.crl", default / "root.crl")
    with connect(address()) as connection, pytest.raises(ConfigError, match="revoked certificates"):
        jdbc_target(connection)
    with connect(address(sslcrl="nowhere.crl")) as connection:
        jdbc_target(connection)


def test_a_key_that_the_driver_cannot_read_says_how_to_convert_it(
    address: Address, spark: SparkSession, certificates: Path, tmp_path: Path
) -> None:
    key = Path(shutil.copy(certificates / "loader.key", tmp_path / "alone.key"))
    key.chmod(0o600)
    with connect(make_conninfo(address(), sslkey=str(key))) as connection, pytest.raises(ConfigError) as refused:
        by_spark(spark, jdbc_target(connection))
    assert "openssl pkcs8 -topk8" in (refused.value.hint or "")

"""Whether Spark's executors can share the address by which this machine reaches the database; what helps if not."""

import socket

import pytest

from pytrickle.compute.spark.reach import OPENING, cannot_connect, check_reach
from pytrickle.database import JdbcTarget
from pytrickle.errors import DatabaseOutOfReach

# Addresses for documentation, which no machine has.
ELSEWHERE = "spark://192.0.2.77:7077"
HERE = ("local", "local[2]", "local-cluster[2,1,1024]", "spark://127.0.0.1:7077", "spark://localhost:7077")


def target(host: str) -> JdbcTarget:
    return JdbcTarget(f"jdbc:postgresql://{host}:5432/shop", {})


@pytest.mark.parametrize("master", [ELSEWHERE, "k8s://https://192.0.2.77:6443", "k8s://https://127.0.0.1:6443"])
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.0.1.1", "[::1]"])
def test_this_machines_own_address_leads_executors_elsewhere_to_themselves(master: str, host: str) -> None:
    with pytest.raises(DatabaseOutOfReach) as refused:
        check_reach(target(host), master)
    said = (
        f"The executors of {master} cannot reach the database at {host.strip('[]')}: there, that is their own machine."
    )
    assert refused.value.message == said
    assert "host=db.example.com" in str(refused.value.hint)


@pytest.mark.parametrize("master", [*HERE, f"spark://{socket.gethostname()}:7077", f"{ELSEWHERE},127.0.0.1:7077"])
def test_executors_may_be_on_this_machine_where_a_master_is(master: str) -> None:
    check_reach(target("localhost"), master)


@pytest.mark.parametrize("master", ["yarn", "spark://unknown.invalid:7077", ""])
def test_what_is_not_certain_to_fail_is_tried(master: str) -> None:
    check_reach(target("localhost"), master)


@pytest.mark.parametrize("master", [ELSEWHERE, "k8s://https://192.0.2.77:6443"])
def test_an_address_for_everybody_is_one_for_executors(master: str) -> None:
    check_reach(target("db.example.com"), master)
    check_reach(target("192.0.2.5"), master)


@pytest.mark.parametrize(
    ("said", "helps"),
    [
        ('FATAL: too many connections for role "etl"', "CONNECTION LIMIT"),
        ("FATAL: remaining connection slots are reserved for roles with the SUPERUSER attribute", "max_connections"),
        ("FATAL: désolé, trop de clients sont déjà connectés", "max_concurrent_refreshes"),
        ("FATAL: the database system is starting up", "once it takes connections"),
        ("Connection to db:5432 refused.", "firewall"),
    ],
)
def test_a_server_that_takes_no_connection_of_sparks_now_is_no_matter_of_the_network(said: str, helps: str) -> None:
    error = cannot_connect(f"Lost task 0.0 in stage 0.0 (TID 0)\n\t{OPENING}(ConnectionFactory.java:5)", said)
    assert error and error.retryable
    assert str(error.hint).startswith("Nothing was changed. ") and helps in str(error.hint)

"""What libpq was told about TLS and the login, spelled for PostgreSQL's JDBC driver, or refused where it would be lost.

The driver ignores what it does not know, so nothing is passed on in the hope that it is obeyed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pytrickle.errors import ConfigError

# libpq name -> pgjdbc name, for what both understand in the same form.
_PASSED_ON = {
    "sslmode": "sslmode",
    "sslpassword": "sslpassword",
    # Only newer drivers know it. Others negotiate TLS in the old way, which every server takes, and obey sslmode.
    "sslnegotiation": "sslNegotiation",
    "gssencmode": "gssEncMode",
    "krbsrvname": "kerberosServerName",
}
_VERIFYING = ("verify-ca", "verify-full")
_BY_THE_SERVER = "Leave it out for pytrickle, and demand it at the server: "
_HBA = _BY_THE_SERVER + "hostssl lines with scram-sha-256 in pg_hba.conf; sslmode=verify-full proves the server."
_OLD_TLS = ("TLSv1", "TLSv1.1", "TLSv1.2")  # Java itself refuses every version older than the last one here.

# Option, whether its value asks for something that JDBC cannot do, what it asks for, and what to do instead.
_REFUSED: tuple[tuple[str, Callable[[str], bool], str, str], ...] = (
    ("channel_binding", lambda value: value == "require", "binds no login to its TLS connection", _HBA),
    ("require_auth", bool, "cannot insist on a way to log in", _HBA),
    (
        "ssl_min_protocol_version",
        lambda value: value not in _OLD_TLS,
        "takes TLS 1.2 as well",
        _BY_THE_SERVER + "ssl_min_protocol_version in postgresql.conf.",
    ),
    (
        "sslcertmode",
        lambda value: value == "require",
        "cannot insist on being asked for its certificate",
        _BY_THE_SERVER + "clientcert=verify-full in pg_hba.conf.",
    ),
)


def tls_properties(options: Mapping[str, str], home: Path, *, through_socket: bool) -> dict[str, str]:
    """Return the driver's properties for libpq's options, at a home directory with libpq's default files.

    With a connection through a Unix socket, TLS is the driver's alone. Raises ConfigError where a connection of the
    driver would be weaker than that of libpq.
    """
    for option, asks, lacks, hint in _REFUSED:
        if asks(options.get(option, "")) and option in options:
            raise _weaker(f"{option}={options[option]}", lacks, hint)
    if through_socket and "requirepeer" in options:
        raise _weaker("requirepeer", "cannot see whose server answers", "Connect by TCP, with sslmode=verify-full.")
    properties = {jdbc: options[libpq] for libpq, jdbc in _PASSED_ON.items() if libpq in options}
    return properties | _authority(options, home) | _own_certificate(options)


def _authority(options: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return how the server's certificate is verified."""
    mode, authority = options.get("sslmode", "prefer"), options.get("sslrootcert")
    if authority == "system":
        if "sslcert" in options:
            hint = "Name the file of the authority's certificate in sslrootcert."
            raise _weaker("sslrootcert=system", "sends no client certificate with it", hint)
        _refuse_revocations(options, home)
        return {"sslfactory": "org.postgresql.ssl.DefaultJavaSSLFactory"}
    found = Path(authority).absolute() if authority else home / ".postgresql" / "root.crt"
    # libpq verifies the server under `require`, too, where it finds an authority; the driver does not.
    verifying = mode in _VERIFYING or (mode == "require" and found.exists())
    if not verifying:
        return {"sslrootcert": str(found)} if authority else {}
    _refuse_revocations(options, home)
    return {"sslmode": mode if mode in _VERIFYING else "verify-ca", "sslrootcert": str(found)}


def _refuse_revocations(options: Mapping[str, str], home: Path) -> None:
    """Refuse lists of revoked certificates, also the one that libpq finds by itself; it ignores what is not there."""
    default = {} if "sslcrl" in options else {"sslcrl": str(home / ".postgresql" / "root.crl")}
    found = {**default, **{name: options[name] for name in ("sslcrl", "sslcrldir") if name in options}}
    given = next((f"{name}={path}" for name, path in found.items() if Path(path).exists()), None)
    if given is not None:
        hint = "Let sslcrl name no file for pytrickle, and give the server another authority when a key of it is lost."
        raise _weaker(given, "reads no list of revoked certificates", hint)


def _own_certificate(options: Mapping[str, str]) -> dict[str, str]:
    """Return the client's certificate and key; the driver reads a key in PKCS-8 DER, which lies beside libpq's."""
    if options.get("sslcertmode") == "disable":
        return {"sslcert": "", "sslkey": ""}
    found = {name: Path(options[name]).absolute() for name in ("sslcert", "sslkey") if name in options}
    if "sslkey" in found and found["sslkey"].with_suffix(".pk8").exists():
        found["sslkey"] = found["sslkey"].with_suffix(".pk8")
    return {name: str(path) for name, path in found.items()}


def _weaker(option: str, lacks: str, hint: str) -> ConfigError:
    return ConfigError(f"Spark would connect less safely than {option} asks for: the JDBC driver {lacks}.", hint)

"""Certificates for the tests of TLS: an authority, what it signed, what it revoked, and another authority."""

from __future__ import annotations

import subprocess
from pathlib import Path

KEY_PASSWORD = "k3y-s3cr3t"
_CONFIGURATION = """
[ca]
default_ca = own
[own]
database = index.txt
serial = serial
new_certs_dir = .
certificate = ca.crt
private_key = ca.key
default_md = sha256
default_days = 30
default_crl_days = 30
policy = any
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
"""


def make_certificates(directory: Path) -> Path:
    """Fill a directory with ``<name>.crt``, ``.key`` (PEM) and ``.pk8`` (DER), the authorities and a list each.

    `server` is for the host name localhost alone; `loader`, `locked`, whose key has a password, and `revoked`, which
    is on ``clients.crl`` and in ``lists``, are for the role loader. ``servers.crl`` revokes the server's. `other` is
    an authority, too.
    """
    (directory / "openssl.cnf").write_text(_CONFIGURATION)
    (directory / "index.txt").touch()
    (directory / "serial").write_text("1000\n")
    for authority in ("ca", "other"):
        _authority(directory, authority)
    _signed(directory, "server", "localhost", "-addext", "subjectAltName=DNS:localhost")
    for name in ("loader", "locked", "revoked"):
        _signed(directory, name, "loader")
    _lock(directory, "locked")
    _revoke(directory, "revoked", "clients.crl")
    _revoke(directory, "server", "servers.crl")
    (directory / "lists").mkdir()
    name = _openssl(directory, "crl", "-hash", "-noout", "-in", "clients.crl").strip()
    (directory / "lists" / f"{name}.r0").symlink_to(directory / "clients.crl")
    return directory


def _authority(directory: Path, name: str) -> None:
    made = ("-x509", "-days", "30", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.crt")
    _openssl(directory, "req", *made, "-newkey", "rsa:2048", "-nodes")


def _signed(directory: Path, name: str, subject: str, *extensions: str) -> None:
    request = ("-subj", f"/CN={subject}", "-keyout", f"{name}.key", "-out", f"{name}.csr", *extensions)
    _openssl(directory, "req", "-newkey", "rsa:2048", "-nodes", *request)
    _openssl(
        directory, "ca", "-batch", "-config", "openssl.cnf", "-in", f"{name}.csr", "-out", f"{name}.crt", "-notext"
    )
    _openssl(directory, "pkcs8", "-topk8", "-outform", "DER", "-in", f"{name}.key", "-out", f"{name}.pk8", "-nocrypt")
    (directory / f"{name}.key").chmod(0o600)


def _lock(directory: Path, name: str) -> None:
    """Give a key a password, in the form that both clients read."""
    key, password = f"{name}.key", f"pass:{KEY_PASSWORD}"
    der = ("-topk8", "-outform", "DER", "-v1", "PBE-SHA1-3DES", "-passout", password)
    _openssl(directory, "pkcs8", *der, "-in", key, "-out", f"{name}.pk8")
    _openssl(directory, "rsa", "-aes256", "-passout", password, "-in", key, "-out", "locked.pem")
    (directory / "locked.pem").rename(directory / key)
    (directory / key).chmod(0o600)


def _revoke(directory: Path, name: str, listed_in: str) -> None:
    """Put one certificate alone on a list, from where others are taken again."""
    before = (directory / "index.txt").read_text()
    _openssl(directory, "ca", "-config", "openssl.cnf", "-revoke", f"{name}.crt")
    _openssl(directory, "ca", "-config", "openssl.cnf", "-gencrl", "-out", listed_in)
    (directory / "index.txt").write_text(before)


def _openssl(directory: Path, *arguments: str) -> str:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, cwd=directory)
    assert done.returncode == 0, done.stderr
    return done.stdout

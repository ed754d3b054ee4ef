"""The versions of PySpark that the format is played with, each in an environment of its own."""

from pathlib import Path

from tests.integrations.environments import python_with

VERSIONS = ("4.0", "4.1", "4.2")
"""Beside the one that is installed, which is newer."""
PACKAGES = ("pandas>=2.2,<3", "pyarrow>=18", "psycopg[binary]>=3.2,<4", "sqlalchemy>=2,<3", "tzdata>=2024.1")
"""What reading needs; the package itself is read from where the tests are."""


def python_of(version: str) -> Path:
    """Return the Python of an environment with this version of PySpark."""
    return python_with(f"pyspark-{version}", f"pyspark[connect]=={version}.*", *PACKAGES)

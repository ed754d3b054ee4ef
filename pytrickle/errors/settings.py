"""Settings, the machine and the installed catalog."""

from pytrickle.errors.base import PytrickleError


class ConfigError(PytrickleError):
    """A setting, or something the machine must provide, is missing or wrong."""


class JavaMissing(ConfigError):
    """Spark needs a Java runtime, version 17 or later, and none was found."""

    default_hint = "Install one (on Debian: apt-get install default-jre-headless) or set JAVA_HOME."


class JdbcDriverMissing(ConfigError):
    """Spark needs PostgreSQL's JDBC driver, and no jar was found."""

    default_hint = "Install it (on Debian: apt-get install libpostgresql-jdbc-java) or set PYTRICKLE_JDBC_JAR."


class DatabaseOutOfReach(ConfigError):
    """Spark's executors are on other machines, and the database's address means something else there."""

    default_hint = (
        "Name the server in the DSN as every worker reaches it, such as host=db.example.com: no Unix socket, and no"
        " address of this machine for itself."
    )


class PackageMissing(ConfigError):
    """An optional Python package is needed for this, and it is not installed."""

    default_hint = "Install it with its extra: pip install 'pytrickle-postgres[plot]', or [arrays]."


class MigrationError(PytrickleError):
    """The catalog could not be installed or removed; the database was left as it was."""

    default_hint = "Nothing was changed; pytrickle install --print shows the SQL."

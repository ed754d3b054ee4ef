"""The server that a benchmark starts: its programs and its settings."""

from pathlib import Path


def debian_binaries() -> Path | None:
    """Return the oldest PostgreSQL that Debian's packages installed; None means the embedded one."""
    installed = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if (path / "initdb").exists()]
    return min(installed, key=lambda path: float(path.parent.name), default=None)


def server_settings(shared_buffers: str) -> dict[str, str]:
    """Return settings as a production server of this size would have them: durable, with memory to work in."""
    return {
        "shared_buffers": shared_buffers,
        "effective_cache_size": "8GB",
        "work_mem": "64MB",
        "maintenance_work_mem": "512MB",
        "max_wal_size": "16GB",
        "checkpoint_timeout": "15min",
        "random_page_cost": "1.1",
    }

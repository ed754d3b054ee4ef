"""Print what the changelog says of a version, for its release; fail unless tag, version and changelog agree."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def release_notes(tag: str, version: str, changelog: str) -> str:
    """Return the section of the changelog for the version that is tagged; raise ValueError where they differ.

    >>> release_notes("v1.2.0", "1.2.0", "# Changelog\\n\\n## Unreleased\\n\\n## 1.2.0, 2026-03-01\\n\\nBetter.\\n")
    'Better.\\n'
    """
    if tag != f"v{version}":
        raise ValueError(f"The tag is {tag}, but pyproject.toml has the version {version}.")
    for section in re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        if re.split(r"[\s,]", heading)[0] == version and text.strip():
            return f"{text.strip()}\n"
    raise ValueError(f"CHANGELOG.md has no section for {version}: give what is unreleased that heading.")


def main(tag: str) -> None:
    """Print the notes of this checkout's release, or end with what is wrong."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    try:
        print(release_notes(tag, version, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")), end="")
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1])

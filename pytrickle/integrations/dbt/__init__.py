"""dbt: a package of macros for dbt-postgres, with a materialization `stream_table`, and its entry in a project."""

from __future__ import annotations

import re
from pathlib import Path

from pytrickle.errors import InvalidArgument

PACKAGE = Path(__file__).with_name("package")
"""The directory of the macros, which a project's `packages.yml` refers to."""

_ENTRY = """\
  # The macros of pytrickle; on another machine PYTRICKLE_DBT_PACKAGE says where they are: pytrickle dbt path
  - local: "{{{{ env_var('PYTRICKLE_DBT_PACKAGE', '{path}') }}}}"
"""


def add_package(project: Path) -> Path:
    """Have a dbt project use the macros: write them into its `packages.yml`, once; return that file.

    :raises InvalidArgument: the directory holds no dbt project, or its `packages.yml` has another form, or cannot be
        written
    """
    if not (project / "dbt_project.yml").is_file():
        raise InvalidArgument(
            f"There is no dbt_project.yml in the directory {str(project)!r}.",
            hint="Name the project: --project-dir DIR.",
        )
    packages = project / "packages.yml"
    try:
        return _add_entry(packages)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        hint = f"Let {packages} be a text file that you may change."
        raise InvalidArgument(f"{packages} cannot be changed: {reason}.", hint) from error


def _add_entry(packages: Path) -> Path:
    text = packages.read_text(encoding="utf-8") if packages.exists() else "packages:\n"
    if "PYTRICKLE_DBT_PACKAGE" in text:
        return packages
    begun = re.search(r"^packages:[ \t]*\n", text, flags=re.MULTILINE)
    if begun is None:
        raise InvalidArgument(f"{packages} has no list of packages.", hint="Write a line `packages:` into it.")
    packages.write_text(text[: begun.end()] + _ENTRY.format(path=PACKAGE) + text[begun.end() :], encoding="utf-8")
    return packages

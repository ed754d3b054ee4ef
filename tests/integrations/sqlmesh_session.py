"""Plans and runs a project of SQLMesh; run by the Python that has SQLMesh. Writes what was computed as JSON."""

import json
import sys
from pathlib import Path


def main(project: str) -> None:
    """Plan the project of a directory, run it, and say which days the model has."""
    from sqlmesh import Context

    context = Context(paths=Path(project))
    context.plan(auto_apply=True, no_prompts=True)
    context.run(ignore_cron=True)
    days = context.fetchdf("SELECT day::text AS day FROM shop.orders_per_day ORDER BY 1")["day"]
    sys.stdout.write(f"said: {json.dumps(list(days))}\n")


if __name__ == "__main__":
    main(sys.argv[1])

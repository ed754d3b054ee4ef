"""Runs commands of dbt, each a list in JSON on a line of standard input; run by the Python that has dbt.

Answers each with a line of JSON: whether it went well, and what was said of each node that was run.
"""

import contextlib
import json
import sys


def main() -> None:
    """Answer until there is no further line."""
    from dbt.cli.main import dbtRunner

    runner = dbtRunner()
    for line in sys.stdin:
        with contextlib.redirect_stdout(sys.stderr):
            done = runner.invoke(json.loads(line))
        results = getattr(done.result, "results", None) or []
        said = {result.node.name: str(result.message) for result in results if hasattr(result, "node")}
        sys.stdout.write(json.dumps({"success": done.success, "said": said}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

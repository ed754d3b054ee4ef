"""Whether a query means under PostgreSQL's own search_path what it meant to its creator."""

from dataclasses import replace

from pytrickle.catalog.definition import Definition
from pytrickle.plan.probe import Probe

IMPLIED = "an operator that its text does not name, such as that of IN or NULLIF, and only the search_path finds"


def understood(definition: Definition, probe: Probe) -> Definition:
    """Say of a definition whether it needs its creator's search_path.

    PostgreSQL prints every name with its schema, but not the operators of IN, NULLIF, CASE x WHEN or IS DISTINCT FROM.
    """
    if definition.needs_path or probe.means_the_same(definition):
        return definition
    return replace(definition, needs_path=IMPLIED)

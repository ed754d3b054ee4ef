"""Whether a query means under PostgreSQL's own search_path what it meant to its creator."""

from dataclasses import replace

from pytrickle.catalog.definition import Definition
from pytrickle.plan.query.probe import Probe


def understood(definition: Definition, probe: Probe) -> Definition:
    """Note in a definition whether it needs its creator's search_path.

    PostgreSQL prints every name with its schema, but not the operators of IN, NULLIF, CASE x WHEN or IS DISTINCT FROM,
    nor what functions name in their bodies.
    """
    if definition.plain_names:
        return definition
    return replace(definition, needs_path=probe.needs_path(definition))

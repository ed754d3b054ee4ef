"""The session settings under which a defining query is evaluated."""

from pytrickle.catalog.refresh import StreamTable


def session_statements(table: StreamTable) -> tuple[str, ...]:
    """Write the settings under which a defining query means what its creator meant, and text carries every value.

    Without row_security a policy that would hide rows from the refresher is an error instead.
    """
    pinned = {**table.session_settings, "extra_float_digits": "1", "bytea_output": "hex", "row_security": "off"}
    path = pinned.pop("search_path")
    settings = [f"SET LOCAL {name} = '{value.replace(chr(39), chr(39) * 2)}'" for name, value in pinned.items()]
    # A list of quoted identifiers, which must not become one string.
    return (*settings, f"SET LOCAL search_path = {path}")

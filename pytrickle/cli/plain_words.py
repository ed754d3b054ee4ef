"""What is wrong with a value on the command line, in plain words instead of those of the library that reads it."""

from __future__ import annotations

import re

_SAID = (
    (re.compile(r"exceeded maximum size"), "{value} is out of range."),
    (re.compile(r"valid integer"), "{value} is no whole number."),
    (re.compile(r"valid number|valid float"), "{value} is no number."),
    (re.compile(r"greater than or equal to (\S+)"), "{value} is too small; the least is {0}."),
    (re.compile(r"less than or equal to (\S+)"), "{value} is too large; the most is {0}."),
)
_PREFIX = "Value error, "


def plainly(message: str, value: object) -> str:
    """Return a message of pydantic, which reads values for Typer, as a sentence about the value.

    >>> plainly("Input should be a valid integer, unable to parse string as an integer", "x")
    "'x' is no whole number."
    >>> plainly("Input should be greater than or equal to 1", "0")
    "'0' is too small; the least is 1."
    >>> plainly("Value error, 'foo' is not one of 'auto', 'spark'.", "foo")
    "'foo' is not one of 'auto', 'spark'."
    """
    for pattern, sentence in _SAID:
        if found := pattern.search(message):
            given = repr(value) if isinstance(value, str) else "One of the values"
            return sentence.format(*found.groups(), value=given)
    return message.removeprefix(_PREFIX)

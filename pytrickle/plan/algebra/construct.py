"""What all constructs share: d op(R) = op(NEW|K) - op(OLD|K), where K are the keys that dR touches.

Each has a file in `constructs/`, with its node, its rule and its text. The expressions of a node are PostgreSQL text
over the columns of ROW, which are the arguments of its operation.
"""

from dataclasses import dataclass
from typing import ClassVar

ROW = "d"
Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Construct:
    """A construct, under the name by which `explain` and reasons call it."""

    label: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """What it is called."""
        return self.label

    @property
    def linear(self) -> bool:
        """Whether it is its input, with its weights: d op(R) = op(dR), without keys or a result of its own."""
        return False

    @property
    def consolidated(self) -> bool:
        """Whether it is linear, but cancels out the rows of its input before it shows them."""
        return False

    @property
    def breaks_ties(self) -> bool:
        """Whether its own order breaks ties, which the user's text leaves open."""
        return False

    @property
    def ordering(self) -> Names:
        """The expressions by which rows are sorted, after the keys, before it is computed."""
        return ()

    @property
    def pushed_down(self) -> Names:
        """The arguments that it shows as they are, so that PostgreSQL moves conditions on them below it."""
        return ()

    def columns(self, arguments: Names, keys: Names) -> Names:
        """Name the columns of the result; one that is named like an argument shows it unchanged."""
        return keys

    def entries(self, arguments: Names, keys: Names) -> Names:
        """Name the columns through which a condition on the result reaches the input."""
        return tuple(key for key in keys if key in self.columns(arguments, keys))

    def representatives(self, keys: Names) -> Names:
        """Name the columns that show one of several equal values."""
        return ()

    def depends_on_order(self, exact: bool) -> bool:
        """Whether the result may depend on the order of rows; `exact` says that equal arguments are the same text."""
        return not exact

    def over(self, rows: str, arguments: Names, keys: Names) -> str:
        """Write it over the rows, which are a query in parentheses."""
        raise TypeError(f"a {type(self).__name__} is not computed from rows")


def prefixed(names: Names) -> Names:
    """Write columns of the rows.

    >>> prefixed(("k0", "a0"))
    ('d.k0', 'd.a0')
    """
    return tuple(f"{ROW}.{name}" for name in names)


def listed(names: Names) -> str:
    """Write a list of columns of the rows."""
    return ", ".join(prefixed(names))

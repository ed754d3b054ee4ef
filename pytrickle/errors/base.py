"""What every error carries."""

from typing import ClassVar


class PytrickleError(Exception):
    """pytrickle could not do what was asked.

    ``hint`` says what to do about it; ``retryable`` whether the same call may succeed later by itself, which is
    what the scheduler obeys; ``sqlstate`` is PostgreSQL's code when the database raised the error. ``attempted`` is the
    action of the refresh that failed with it, once that was planned. ``excerpt`` is the line of a defining query that
    PostgreSQL refused, with a caret below the place.
    """

    default_hint: ClassVar[str | None] = None
    default_retryable: ClassVar[bool] = False
    excerpt: str | None = None

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        retryable: bool | None = None,
        *,
        sqlstate: str | None = None,
        attempted: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or self.default_hint
        if self.hint:
            # Tracebacks show it, and so do notebooks, and Spark where it is raised in a data source.
            self.add_note(self.hint)
        self.retryable = self.default_retryable if retryable is None else retryable
        self.sqlstate = sqlstate
        self.attempted = attempted

    @property
    def kind(self) -> str:
        """What may be said of the error to everybody: its SQLSTATE or class, without the values that it may quote."""
        return f"SQLSTATE {self.sqlstate}" if self.sqlstate else type(self).__name__

"""Statements sent together: their answers are waited for once, where one of them is asked for."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import psycopg


def pipelined(connection: psycopg.Connection) -> AbstractContextManager[object]:
    """Send statements within the block without waiting for each; a client library that is too old waits.

    Within the block COPY and several statements in one text are impossible. An error appears where an answer is asked
    for, at the latest at the end of the block.
    """
    return _pipeline(connection) if psycopg.capabilities.has_pipeline() else nullcontext()


@contextmanager
def _pipeline(connection: psycopg.Connection) -> Iterator[psycopg.Pipeline]:
    """Open a pipeline that raises the first error alone.

    Psycopg would log, too, what then keeps it from being ended, as that its connection was lost. So it is told of none.
    """
    first: BaseException | None = None
    try:
        with connection.pipeline() as pipeline:
            try:
                yield pipeline
            except BaseException as error:
                first = error
    except psycopg.Error:
        if first is None:
            raise
    if first is not None:
        raise first


def is_stuck(connection: psycopg.Connection) -> bool:
    """Whether a connection that nobody uses is in a pipeline: it was lost in one, and may look open for ever."""
    if connection.closed or not psycopg.capabilities.has_pipeline():
        return False
    return connection.pgconn.pipeline_status != psycopg.pq.PipelineStatus.OFF

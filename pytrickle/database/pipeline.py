"""Statements sent together: their answers are waited for once, where one of them is asked for."""

from contextlib import AbstractContextManager, nullcontext

import psycopg


def pipelined(connection: psycopg.Connection) -> AbstractContextManager[object]:
    """Send statements within the block without waiting for each; a client library that is too old waits.

    Within the block COPY and several statements in one text are impossible. An error appears where an answer is asked
    for, at the latest at the end of the block.
    """
    return connection.pipeline() if psycopg.capabilities.has_pipeline() else nullcontext()


def is_stuck(connection: psycopg.Connection) -> bool:
    """Whether a connection that nobody uses is in a pipeline: it was lost in one, and may look open for ever."""
    if connection.closed or not psycopg.capabilities.has_pipeline():
        return False
    return connection.pgconn.pipeline_status != psycopg.pq.PipelineStatus.OFF

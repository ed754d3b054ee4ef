"""The format `pytrickle`, to read and to write."""

from pytrickle.streaming.sink.data_source import PostgresSinkSource
from pytrickle.streaming.source.data_source import PytrickleReads


class PytrickleSource(PytrickleReads, PostgresSinkSource):
    """Reads tables and changes, and loads the batches of streaming queries."""

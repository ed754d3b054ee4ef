"""The format `pytrickle`, to read and to write."""

from pytrickle.streaming.sink import data_source as sink
from pytrickle.streaming.source.data_source import PytrickleReads


class PostgresSinkSource(PytrickleReads, sink.PostgresSinkSource):
    """Loads the batches of streaming queries, and reads tables and changes."""

"""What Spark looks for: by this module it finds the format `pytrickle`, without any registration."""

from __future__ import annotations

from contextlib import suppress

from pytrickle.streaming.source.data_source import PytrickleReads

DefaultSource: type = PytrickleReads

# Spark imports this module whatever is read. The sink needs PySpark 4.1.
with suppress(ImportError):
    from pytrickle.streaming.data_source import PostgresSinkSource

    DefaultSource = PostgresSinkSource

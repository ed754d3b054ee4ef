"""For loaders: how to find the watermark of a source, without Spark and without a database."""

from pytrickle.watermarks.advice.advise import Advice, Loss, Recommendation, Subject, advise
from pytrickle.watermarks.advice.chart import draw_chart
from pytrickle.watermarks.advice.distribution import Bar, Distribution
from pytrickle.watermarks.advice.history import spreads, waits
from pytrickle.watermarks.advice.report import describe
from pytrickle.watermarks.advice.skew import SkewAnalyzer
from pytrickle.watermarks.generators.emission import Emission, emission_interval
from pytrickle.watermarks.generators.generator import Generator
from pytrickle.watermarks.generators.inputs import InputState, InputStatus
from pytrickle.watermarks.generators.metrics import Metrics, advancement_rate
from pytrickle.watermarks.generators.retention import IntervalJoin
from pytrickle.watermarks.generators.tenants import Tenants
from pytrickle.watermarks.generators.tracker import Tracker, TrackerStatus
from pytrickle.watermarks.generators.validator import Validator
from pytrickle.watermarks.generators.ways import (
    adaptive,
    bounded_file,
    cdc,
    event_time,
    heartbeat,
    processing_time,
    punctuated,
    quantile,
)
from pytrickle.watermarks.instant import INFINITY, parameter
from pytrickle.watermarks.loading.load import Loading, load
from pytrickle.watermarks.loading.partitions import PartitionedLoading

__all__ = [
    "INFINITY",
    "Advice",
    "Bar",
    "Distribution",
    "Emission",
    "Generator",
    "InputState",
    "InputStatus",
    "IntervalJoin",
    "Loading",
    "Loss",
    "Metrics",
    "PartitionedLoading",
    "Recommendation",
    "SkewAnalyzer",
    "Subject",
    "Tenants",
    "Tracker",
    "TrackerStatus",
    "Validator",
    "adaptive",
    "advancement_rate",
    "advise",
    "bounded_file",
    "cdc",
    "describe",
    "draw_chart",
    "emission_interval",
    "event_time",
    "heartbeat",
    "load",
    "parameter",
    "processing_time",
    "punctuated",
    "quantile",
    "spreads",
    "waits",
]

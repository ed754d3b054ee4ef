"""For loaders: how to find the watermark of a source, without Spark and without a database."""

from pytrickle.watermarks.advice import Advice, Loss, Recommendation, Subject, advise
from pytrickle.watermarks.chart import draw_chart
from pytrickle.watermarks.distribution import Bar, Distribution
from pytrickle.watermarks.emission import Emission, emission_interval
from pytrickle.watermarks.generator import Generator
from pytrickle.watermarks.generators import (
    adaptive,
    bounded_file,
    cdc,
    event_time,
    heartbeat,
    processing_time,
    punctuated,
    quantile,
)
from pytrickle.watermarks.history import spreads, waits
from pytrickle.watermarks.inputs import InputState, InputStatus
from pytrickle.watermarks.instant import INFINITY, parameter
from pytrickle.watermarks.load import Loading, load
from pytrickle.watermarks.metrics import Metrics, advancement_rate
from pytrickle.watermarks.report import describe
from pytrickle.watermarks.retention import IntervalJoin
from pytrickle.watermarks.skew import SkewAnalyzer
from pytrickle.watermarks.tenants import Tenants
from pytrickle.watermarks.tracker import Tracker, TrackerStatus
from pytrickle.watermarks.validator import Validator

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

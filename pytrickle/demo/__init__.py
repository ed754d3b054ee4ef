"""A runnable demonstration: two loaders at different paces, and one report for each way of watermark gating."""

from pytrickle.demo.run import run_demo

__all__ = ["run_demo"]

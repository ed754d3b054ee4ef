"""Percentiles by nearest rank: the least value that as many values as asked for do not exceed."""

from __future__ import annotations

from fractions import Fraction

from pytrickle.errors import InvalidArgument


def exactly(name: str, share: float) -> Fraction:
    """Return a share as it is written, 0.999 as 999/1000; raise InvalidArgument unless it is between 0 and 1."""
    found = Fraction(str(share))
    if not 0 < found < 1:
        raise InvalidArgument(f"{name} must be between 0 and 1, it is {share}.", "Give a share such as 0.99.")
    return found


def in_percent(percent: float) -> Fraction:
    """Return a percentage as the share it is, 99.9 as 999/1000; raise InvalidArgument outside of 0 to 100."""
    found = Fraction(str(percent)) / 100
    if not 0 < found < 1:
        raise InvalidArgument(f"A percentile is between 0 and 100, not {percent}.", "Give a number such as 99.9.")
    return found


def rank(count: int, share: Fraction) -> int:
    """Return which of `count` ascending values, counted from 1, is the percentile: ``ceil(share · count)``.

    In exact arithmetic: with floating point numbers the 99.9th percentile of 1,000 values would be the greatest.

    >>> rank(1000, exactly("p", 0.999)), rank(100, exactly("p", 0.99)), rank(20, exactly("p", 0.95))
    (999, 99, 19)
    """
    return -(-share.numerator * count // share.denominator)

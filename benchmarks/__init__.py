"""Measurements of pytrickle against what it replaces; `python -m benchmarks` writes them to docs/benchmarks.md."""

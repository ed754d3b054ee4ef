"""The 22 TPC-H queries: differential refresh against REFRESH MATERIALIZED VIEW; `python -m benchmarks.tpch`."""

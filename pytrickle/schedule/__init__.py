"""Ticks over the graph of stream tables, and the daemon that repeats them."""

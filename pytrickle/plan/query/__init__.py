"""From SQL text to algebra: one file for each part of a query."""

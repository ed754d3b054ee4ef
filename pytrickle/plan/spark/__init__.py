"""From algebra to what Spark reads and joins, still as data."""

"""The catalog as values: its tables, the rows read from it, and how it is installed."""

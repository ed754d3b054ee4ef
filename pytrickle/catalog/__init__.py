"""The catalog as values: its tables, the rows read from it, and the functions that read them."""

"""The health of a machine, a server and a catalog, as values."""

"""Definitions beside the code: read from files, compared with the database, carried out, and written down."""

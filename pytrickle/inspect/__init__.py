"""Looking at stream tables without changing them: explain, verify, read as of, examine, draw."""

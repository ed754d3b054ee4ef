"""What PostgreSQL's SQL means: its text, its types and its three-valued logic."""

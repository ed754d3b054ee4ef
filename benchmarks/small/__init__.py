"""Single steps, each measured in seconds on a small database."""

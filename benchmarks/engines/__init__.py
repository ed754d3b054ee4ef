"""What each engine takes for the same refresh, in seconds and in processor seconds of the server."""

"""How long to wait for a source, learned from what happened before."""

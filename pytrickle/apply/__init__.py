"""Applying a staged delta: everything here runs inside the one write transaction of a refresh."""

"""Refreshing stream tables that read each other, until nothing changes any more."""

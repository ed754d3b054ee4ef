"""Plans of stream tables that read each other."""

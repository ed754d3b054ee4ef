"""What Python users hold: one object for everything that can be done with stream tables."""

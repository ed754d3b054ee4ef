"""How results look on a screen."""

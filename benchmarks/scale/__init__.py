"""What many stream tables cost: to create them, to tick over them, and to look at them."""

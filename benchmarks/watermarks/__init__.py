"""What a watermark generator costs for each row."""

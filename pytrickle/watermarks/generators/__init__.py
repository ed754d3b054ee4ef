"""Ways to find the watermark of a source from what it delivers."""

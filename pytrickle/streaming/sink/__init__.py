"""The sink of Spark's Structured Streaming: tasks stage rows, the driver commits a batch in one transaction."""

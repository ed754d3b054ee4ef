"""What the streaming sink costs beside Spark's own append over JDBC."""

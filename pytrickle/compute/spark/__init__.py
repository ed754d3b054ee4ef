"""Running a refresh plan on Spark."""

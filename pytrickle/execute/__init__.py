"""Running a refresh plan on Spark; the only package that imports pyspark."""

"""The pure planner: SQL text in, a delta plan as data out; imports neither psycopg nor pyspark."""

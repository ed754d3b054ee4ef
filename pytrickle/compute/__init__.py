"""Computing the rows of a plan, on Spark or in PostgreSQL alone."""

"""Reading for others: relations at one moment and changes between versions, as Arrow, with or without Spark."""

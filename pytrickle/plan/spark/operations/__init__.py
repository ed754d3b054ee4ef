"""Operations that Spark computes, a file for each way: what their rows carry, and their text in Spark's SQL."""

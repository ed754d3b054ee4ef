"""How long a change takes from its commit to the last stream table, by the shape of the graph."""

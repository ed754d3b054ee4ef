"""The relational algebra over Z-sets: its nodes, and the delta rules with their laws."""

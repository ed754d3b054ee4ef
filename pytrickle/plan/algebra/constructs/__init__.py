"""What operations make of the rows of a partition, a file for each construct of SQL: its node, its rule, its text.

A file `tests/equivalence/rules/<name>.sql` plays each of them: queries, and the deltas that changes make of them.
"""

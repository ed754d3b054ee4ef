"""What capture costs those who write: bulk COPY, single rows, and pgbench's clients."""

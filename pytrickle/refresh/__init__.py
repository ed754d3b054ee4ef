"""One refresh from the snapshot that is read to the transaction that is committed, alone or with others."""

"""Release certificates: what a release promises, for people who do not have the ledger."""

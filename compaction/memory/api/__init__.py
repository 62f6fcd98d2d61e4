"""The REST API of the ledger, of standing rules, and of what a summary leaves out."""

"""One module a verb: the use cases, where ledger, workspaces and agents meet."""

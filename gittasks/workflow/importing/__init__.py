"""Takes over the tasks of another tool: one module a source, one way into the ledger."""

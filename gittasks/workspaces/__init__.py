"""A task's branch, worktree, checks and landing: the code side of what the ledger records."""

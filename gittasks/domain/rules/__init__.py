"""What each request asks for: one module a family of verbs, all on the same `Decision`."""

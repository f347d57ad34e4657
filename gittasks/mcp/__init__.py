"""The project over MCP: what a manager's agent asks, lists, and follows, on stdin and stdout."""

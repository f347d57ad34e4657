"""The task history as commits on an orphan branch: read, appended to, verified, recovered."""

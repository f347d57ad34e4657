"""Tasks for a team of agents, kept as commits in the repository they are about."""

__version__ = "0.1.0"

"""The runner: gives tasks to the slots of the pool, listens to their agents, and settles turns."""

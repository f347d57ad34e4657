"""Values and decisions: no files, no processes, no clock of its own."""

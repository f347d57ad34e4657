"""One file a command; each holds one click command named `command`."""

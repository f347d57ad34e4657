"""Read models over the task graph; nothing else in `domain` imports them."""

"""The agent programs we know how to speak with: one module each, and the table of them."""

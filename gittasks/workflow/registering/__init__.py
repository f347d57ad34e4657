"""Makes the clients of people and agents know the tool: their settings, and skills for them."""

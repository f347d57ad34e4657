"""The only folder that runs git; it knows no task."""

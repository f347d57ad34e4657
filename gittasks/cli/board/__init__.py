"""The page of the board: one file that needs no other, and the server that keeps it up to date."""

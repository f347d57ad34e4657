"""Every word an agent reads: one Markdown file each, and how they are found and filled in."""

"""The command line: words in, one call of the workflow, text or JSON out."""

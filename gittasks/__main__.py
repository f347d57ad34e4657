"""Runs the tool as `python -m gittasks`."""

from __future__ import annotations

from gittasks.cli.main import main

if __name__ == "__main__":
    main()

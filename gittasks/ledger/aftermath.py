"""What a replay leaves to be done here: kept in a file until it is done, so that no crash forgets it.

Branches of lost claims get another name, tasks with a new number keep their folder. Which ones is
written down before the branch of the ledger moves, with the tip it moves to; if it never moved
there, nothing is to do.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from gittasks.domain.replayed import Lost, Renaming, Replayed
from gittasks.ledger import layout, repair

if TYPE_CHECKING:
    from collections.abc import Callable

    from gittasks.ledger.ledger import Ledger

__all__ = ["finish", "note"]


def note(ledger: Ledger, tip: str, found: Replayed) -> None:
    """Writes down what has to follow once the ledger is at a tip; nothing where nothing has."""
    if not found.renamed and not found.lost:
        return
    renamed = [(*one[:3], one.branch and list(one.branch)) for one in found.renamed]
    before = _read(ledger)
    older = [] if before is None else before[1]
    data = {"tip": tip, "renamed": renamed, "lost": [list(one) for one in found.lost]}
    path = os.path.join(ledger.state_dir, layout.REPLAYED)
    beside = f"{path}.{os.getpid()}"
    with open(beside, "w", encoding="utf-8") as file:
        json.dump([*older, data], file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


def finish(ledger: Ledger, follow: Callable[[Replayed], None]) -> None:
    """Does what a replay has left to do, if it was cut short, and forgets it."""
    found = _read(ledger)
    if found is None:
        return
    path, entries = found
    ledger.refresh()
    for entry in entries:
        try:
            tip, replayed = str(entry["tip"]), _replayed(entry)
        except (KeyError, TypeError, ValueError):
            continue
        if repair.contains(ledger, ledger.tip, tip):
            follow(replayed)
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _read(ledger: Ledger) -> tuple[str, list[dict[str, object]]] | None:
    path = os.path.join(ledger.state_dir, layout.REPLAYED)
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except FileNotFoundError:
        return None
    except ValueError:
        return path, []
    return path, [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []


def _replayed(entry: dict[str, object]) -> Replayed:
    renamed, lost = entry["renamed"], entry["lost"]
    assert isinstance(renamed, list)
    assert isinstance(lost, list)
    return Replayed(
        (),
        tuple(
            Renaming(uid, old, new, (branch[0], branch[1]) if branch else None)
            for uid, old, new, branch in renamed
        ),
        tuple(Lost(*one) for one in lost),
    )

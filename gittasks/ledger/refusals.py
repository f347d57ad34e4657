"""What a remote does not take beside the ledger, so that it is not asked again at each sync.

Some remotes keep every branch, and some have no refs but branches and tags. Nothing that counts
depends on either, so it is left out, and asked again after a day.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from gittasks.ledger.ledger import Ledger
    from gittasks.plumbing.remote import Update

_HEADS = "refs/heads/"
_SECONDS = 24 * 3600


def is_optional(update: Update) -> bool:
    """Tells whether a sync is whole without a move: the end of a branch, or what is no branch."""
    return update.new is None or not update.name.startswith(_HEADS)


def without_refused(ledger: Ledger, remote: str, updates: Iterable[Update]) -> list[Update]:
    """Returns the moves that the remote has not refused lately."""
    known = _known(ledger, remote)
    return [one for one in updates if not is_optional(one) or _key(one) not in known]


def note(ledger: Ledger, remote: str, updates: Sequence[Update], names: Collection[str]) -> None:
    """Remembers that a remote has refused some moves."""
    import json

    refused = {_key(one) for one in updates if one.name in names}
    told = {"at": ledger.clock(), "refused": sorted(refused | _known(ledger, remote))}
    path = _path(ledger, remote)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    beside = f"{path}.{os.getpid()}"
    with open(beside, "w", encoding="utf-8") as file:
        json.dump(told, file)
    os.replace(beside, path)


def _known(ledger: Ledger, remote: str) -> frozenset[str]:
    try:
        with open(_path(ledger, remote), encoding="utf-8") as file:
            text = file.read()
    except OSError:
        return frozenset()
    import json

    try:
        told = json.loads(text)
        is_old = not 0 <= ledger.clock() - told["at"] < _SECONDS
        return frozenset() if is_old else frozenset(told["refused"])
    except (ValueError, TypeError, LookupError):
        return frozenset()


def _key(update: Update) -> str:
    if update.name.startswith(_HEADS):
        return f"{update.name} {update.old}"
    return update.name.rpartition("/")[0]


def _path(ledger: Ledger, remote: str) -> str:
    name = "".join(c if c.isalnum() or c in "-_" else f"%{ord(c):02x}" for c in remote)
    return os.path.join(ledger.state_dir, "not-taken", f"{name}.json")

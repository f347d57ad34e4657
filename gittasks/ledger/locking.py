"""The lock that writers of one repository queue for."""

from __future__ import annotations

import os

from gittasks.domain.errors import Busy, GittasksError
from gittasks.plumbing.errors import LockTimeout
from gittasks.plumbing.locks import FileLock

__all__ = ["WriteLock", "unwritable"]


class WriteLock:
    """The lock that every writer of this repository queues for; says who holds it."""

    def __init__(self, state_dir: str, timeout: float) -> None:
        """Waits as many seconds at most."""
        self._lock = FileLock(
            os.path.join(state_dir, "write.flk"), timeout, "write lock of the ledger"
        )

    def __enter__(self) -> None:
        try:
            self._lock.acquire()
        except LockTimeout as error:
            raise Busy(str(error), "Try again when the holder has finished.") from None
        except OSError as error:
            raise unwritable(error) from None

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def unwritable(error: OSError) -> GittasksError:
    """Returns what a failed write of a file means for whoever wanted it."""
    where = f" ({os.fsdecode(error.filename)})" if error.filename else ""
    return GittasksError(
        f"The ledger cannot be written: {error.strerror}{where}.",
        "Make the folder writable, or make room on the disk.",
    )

"""What this host alone knows: who claimed what with which secret, and which landings are open.

One JSON file each, readable by its owner only, written beside and renamed into place.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gittasks.domain.requests import Snapshot

Process = tuple[int, str]
"""A process id with the start time that tells it from a later process of that number."""

_ENDED = ".ended"
_SHARED = ".shared"


class ClaimRecord(NamedTuple):
    """One claim taken in this clone: its secret, and how everything looked at dispatch.

    `assignment` is the text as it was dispatched, own heading included; the holder writes from
    `offset` on. `body_oid` names the body it was made from. `user_status` lists path and content
    of what already differed in the user's own checkout.
    """

    claim: str
    secret: str
    task: str
    uid: str
    actor: str
    role: str
    state: str = ""
    tree: str = ""
    assignment: str = ""
    heading: str = ""
    offset: int = 0
    body_oid: str = ""
    checks: tuple[str, ...] = ()
    snapshot: Snapshot | None = None
    user_status: tuple[tuple[str, str], ...] = ()
    process: Process | None = None
    at: int = 0


class LandingRecord(NamedTuple):
    """One landing that has begun: `commit` is where the base is to move from `base_old`.

    Until there is such a commit it is empty, and there is nothing to undo.
    """

    task: str
    uid: str
    base: str
    base_old: str
    tip: str
    commit: str
    mode: str
    branch: str | None = None
    process: Process | None = None
    at: int = 0
    actor: str = ""
    remark: str | None = None
    remote: str = ""
    """The remote that is told first, where the clone shares."""


def new_secret() -> tuple[str, str]:
    """Returns a fresh secret and the claim id that everybody may see."""
    secret = os.urandom(16).hex()
    return secret, claim_of(secret)


def claim_of(secret: str) -> str:
    """Returns the claim id of a secret."""
    from gittasks.plumbing.objects import digest

    return digest("sha256", secret.encode("utf-8", "surrogateescape")).hex()[:32]


def write(state_dir: str, record: ClaimRecord) -> None:
    """Keeps the record of a claim."""
    path = _claim_path(state_dir, record.claim)
    write_json(path, _as_json(record))
    if os.path.isdir(path + _SHARED):
        write_json(os.path.join(path + _SHARED, os.path.basename(path)), _as_json(record))


def drop(state_dir: str, claim: str) -> None:
    """Forgets the record of a claim."""
    path = _claim_path(state_dir, claim)
    _remove(path)
    _remove(path + _ENDED)
    if os.path.isdir(path + _SHARED):
        import shutil

        shutil.rmtree(path + _SHARED, ignore_errors=True)


def shared(state_dir: str, claim: str) -> str:
    """Returns a folder that holds the record of one claim and no other, kept up to date.

    It is what the holder may see of all claims.
    """
    folder = _claim_path(state_dir, claim) + _SHARED
    os.makedirs(folder, mode=0o700, exist_ok=True)
    record = with_claim(state_dir, claim)
    if record is not None:
        write(state_dir, record)
    return folder


def put_by(state_dir: str, claim: str) -> None:
    """Forgets the record of a claim whose end the others have not agreed to yet."""
    path = _claim_path(state_dir, claim)
    try:
        os.rename(path, path + _ENDED)
    except FileNotFoundError:
        pass


def bring_back(state_dir: str, claim: str, task: str) -> ClaimRecord | None:
    """Returns the record of a claim whose end was not agreed to, which counts again."""
    path = _claim_path(state_dir, claim)
    try:
        os.rename(path + _ENDED, path)
    except FileNotFoundError:
        return None
    record = with_claim(state_dir, claim)
    if record is not None and record.task != task:
        record = record._replace(task=task)
        write(state_dir, record)
    return record


def find(
    state_dir: str, actor: str, *, task: str | None = None, uid: str | None = None
) -> ClaimRecord | None:
    """Returns the newest record of an actor on a task, given by its id or its uid."""
    return _newest(
        record
        for record in _all(state_dir, uid or task or "")
        if record.actor == actor
        and (task is None or record.task == task)
        and (uid is None or record.uid == uid)
    )


def with_claim(state_dir: str, claim: str) -> ClaimRecord | None:
    """Returns the record of a claim id."""
    return _claim_from(read_json(_claim_path(state_dir, claim)))


def all(state_dir: str) -> tuple[ClaimRecord, ...]:
    """Returns the records of every claim taken in this clone, oldest first."""
    return _all(state_dir)


def ended(state_dir: str) -> tuple[ClaimRecord, ...]:
    """Returns the records of the claims that have ended here and were put by."""
    return _sorted(_read_all(os.path.join(state_dir, "claims"), suffix=_ENDED))


def of_task(state_dir: str, uid: str) -> tuple[ClaimRecord, ...]:
    """Returns the records of every claim on one task, oldest first."""
    return tuple(record for record in _all(state_dir, uid) if record.uid == uid)


def write_landing(state_dir: str, record: LandingRecord) -> None:
    """Keeps the record of a landing so that it survives a crash of the machine."""
    write_json(_landing_path(state_dir, record.task), _as_json(record), durable=True)


def drop_landing(state_dir: str, task: str) -> None:
    """Forgets the record of a landing."""
    _remove(_landing_path(state_dir, task))


def landing(state_dir: str, task: str) -> LandingRecord | None:
    """Returns the open landing of a task."""
    return _landing_from(read_json(_landing_path(state_dir, task)))


def landings(state_dir: str) -> tuple[LandingRecord, ...]:
    """Returns every open landing."""
    found = map(_landing_from, _read_all(os.path.join(state_dir, "landing")))
    return tuple(filter(None, found))


class Refusal(NamedTuple):
    """Why the last landing of a task was refused here, at which submitted tip, and when."""

    task: str
    tip: str
    text: str
    at: int = 0


def keep_refusal(state_dir: str, refusal: Refusal) -> None:
    """Remembers why a landing was refused."""
    write_json(_refusal_path(state_dir, refusal.task), refusal._asdict())


def drop_refusal(state_dir: str, task: str) -> None:
    """Forgets the refusal of a landing."""
    _remove(_refusal_path(state_dir, task))


def refusal(state_dir: str, task: str, tip: str | None) -> str | None:
    """Returns why the tip of a task could not land here, None if it was not refused."""
    kept = read_json(_refusal_path(state_dir, task))
    if kept is None or kept.get("tip") != tip:
        return None
    return str(kept.get("text", "")) or None


def _refusal_path(state_dir: str, task: str) -> str:
    return os.path.join(state_dir, "refused", f"{_file_name(task)}.json")


def note_number(state_dir: str, old: str, new: str, uid: str) -> None:
    """Remembers that a number of this clone has become another one."""
    folder = os.path.join(state_dir, "renumbered")
    known = os.listdir(folder) if os.path.isdir(folder) else []
    # It may have had yet another number before this one.
    same = {
        name for name in known if (read_json(os.path.join(folder, name)) or {}).get("uid") == uid
    }
    for name in sorted({*same, f"{_file_name(old)}.json"}):
        write_json(os.path.join(folder, name), {"new": new, "uid": uid})


def number_now(state_dir: str, old: str) -> str | None:
    """Returns the number that a task of this clone got in place of one, None if it kept it."""
    found = read_json(os.path.join(state_dir, "renumbered", f"{_file_name(old)}.json"))
    return None if found is None else str(found.get("new", "")) or None


def renumber(state_dir: str, uid: str, task: str) -> None:
    """Makes the records of a task's claims name the number that it has now."""
    for record in of_task(state_dir, uid):
        write(state_dir, record._replace(task=task))


def own_process() -> Process | None:
    """Returns this process as a record names it."""
    from gittasks.plumbing.processes import process_identity

    return process_identity(os.getpid())


def is_alive(process: Process | None) -> bool:
    """Returns whether the process of a record still runs; no process is not alive."""
    from gittasks.plumbing import processes

    return process is not None and processes.is_alive(*process)


def _claim_path(state_dir: str, claim: str) -> str:
    return os.path.join(state_dir, "claims", f"{_file_name(claim)}.json")


def _landing_path(state_dir: str, task: str) -> str:
    return os.path.join(state_dir, "landing", f"{_file_name(task)}.json")


def _file_name(name: str) -> str:
    if not name or not name.isalnum():
        raise ValueError(f"{name!r} cannot name a record.")
    return name


def _as_json(record: ClaimRecord | LandingRecord) -> dict[str, Any]:
    data = record._asdict()
    if isinstance(record, ClaimRecord) and record.snapshot is not None:
        data["snapshot"] = record.snapshot._asdict()
    return data


def _claim_from(data: dict[str, Any] | None) -> ClaimRecord | None:
    try:
        return None if data is None else _claim(_known(data, ClaimRecord._fields))
    except (TypeError, ValueError, KeyError):
        return None


def _landing_from(data: dict[str, Any] | None) -> LandingRecord | None:
    try:
        return None if data is None else _landing(_known(data, LandingRecord._fields))
    except (TypeError, ValueError, KeyError):
        return None


def _known(data: dict[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    # A record of a later version may hold more; what we do not know we do not need.
    return {name: value for name, value in data.items() if name in fields}


def _claim(data: dict[str, Any]) -> ClaimRecord:
    seen = data.get("snapshot")
    if seen is not None:
        from gittasks.domain.requests import Snapshot  # a read meets no record

        data["snapshot"] = Snapshot(
            seen["branch"], seen["head"], seen["tip"], tuple(seen["status"])
        )
    data["checks"] = tuple(data.get("checks", ()))
    data["user_status"] = tuple((path, content) for path, content in data.get("user_status", ()))
    data["process"] = _process(data.get("process"))
    return ClaimRecord(**data)


def _landing(data: dict[str, Any]) -> LandingRecord:
    data["process"] = _process(data.get("process"))
    return LandingRecord(**data)


def _process(value: Any) -> Process | None:
    return None if value is None else (int(value[0]), str(value[1]))


def _newest(records: Iterable[ClaimRecord]) -> ClaimRecord | None:
    newest = None
    for record in records:
        newest = record
    return newest


def _all(state_dir: str, holding: str = "") -> tuple[ClaimRecord, ...]:
    return _sorted(_read_all(os.path.join(state_dir, "claims"), holding))


def _sorted(read: Iterable[dict[str, Any] | None]) -> tuple[ClaimRecord, ...]:
    found = filter(None, map(_claim_from, read))
    return tuple(sorted(found, key=lambda record: (record.at, record.claim)))


def _read_all(folder: str, holding: str = "", suffix: str = ".json") -> list[dict[str, Any] | None]:
    """Returns what each file of a folder holds; those without a word in them are not taken apart."""
    try:
        names = sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    paths = [os.path.join(folder, name) for name in names if name.endswith(suffix)]
    return [read_json(path) for path in paths if not holding or _holds(path, holding)]


def _holds(path: str, word: str) -> bool:
    try:
        with open(path, "rb", buffering=0) as file:
            return word.encode("ascii", "replace") in file.read()
    except OSError:
        return False


def read_json(path: str) -> dict[str, Any] | None:
    """Returns what a file holds; one that a crash left empty or torn says nothing."""
    try:
        # Only the writer makes sure that it is ASCII; reading it as such would load a codec.
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def write_json(path: str, data: dict[str, Any], *, durable: bool = False) -> None:
    """Replaces a file whole or not at all; `durable` waits until the disk has it."""
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    beside = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "w", encoding="utf-8") as file:
            json.dump(data, file)
            if durable:
                file.flush()
                os.fsync(fd)
        os.rename(beside, path)
    except BaseException:
        _remove(beside)
        raise
    if durable:
        _sync_folder(folder)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _sync_folder(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

"""Whether and how a clone shares its ledger: through which remote, and what is fetched from it.

A clone shares when `gittasks.remote` is set. Until then nothing is fetched and nothing is pushed.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gittasks.domain.errors import SyncRefused, UsageFault
from gittasks.domain.fields import shown
from gittasks.ledger import layout
from gittasks.ledger.shared import Shared
from gittasks.plumbing import remote
from gittasks.workflow.site import LOCK_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gittasks.workflow.site import Site

HEADS = "refs/heads/"
LEASES = "refs/gittasks/leases/*"


def shared_of(site: Site, *, timeout: float | None = None) -> Shared:
    """Returns the ledger with the remote that this clone shares it through."""
    assert site.remote is not None
    return Shared(site.ledger, site.remote, timeout=timeout)


def choose(site: Site, wanted: str | None = None) -> str | None:
    """Returns the remote to share through: the one named, the one set, origin, or the only one."""
    names = remote.names(site.repo)
    if wanted is not None:
        if not wanted.strip():
            raise UsageFault(
                "The name of the remote is blank.",
                f"Name one of {', '.join(names)}."
                if names
                else "Add one: git remote add origin URL.",
            )
        if wanted not in names and not layout.is_ref_part(wanted):
            raise UsageFault(
                f"{shown(wanted)} cannot name a remote.",
                f"Give it a name: git remote add NAME {wanted}.",
            )
        if wanted not in names:
            raise UsageFault(
                f"There is no remote {wanted!r} in this clone.",
                f"Name one of {', '.join(names)}."
                if names
                else f"Add it: git remote add {wanted} URL.",
            )
        return wanted
    if site.remote is not None:
        return site.remote
    if "origin" in names:
        return "origin"
    return names[0] if len(names) == 1 else None


def require_remote(site: Site, wanted: str | None = None) -> str:
    """Returns the remote to sync with; raises SyncRefused where it is not clear which."""
    name = choose(site, wanted)
    if name is None:
        names = remote.names(site.repo)
        raise SyncRefused(
            "This clone has several remotes, and none is origin."
            if names
            else "This clone has no remote.",
            "Choose one: git config --replace-all gittasks.remote NAME."
            if names
            else "Add one: git remote add origin URL.",
        )
    return name


def begin(site: Site, name: str) -> None:
    """Makes this clone share its ledger through a remote."""
    if site.remote != name:
        site.repo.git("config", "--local", "--replace-all", "gittasks.remote", name)
        keep_from_mirroring(site, name)
        site.repo.forget_config()


@contextmanager
def beginning(site: Site, name: str) -> Iterator[None]:
    """Makes this clone share its ledger through a remote, unless the block ends in an error."""
    before = own_values(site, "gittasks.remote")
    site.repo.git("config", "--local", "--replace-all", "gittasks.remote", name)
    site.repo.forget_config()
    try:
        yield
    except BaseException:
        put_back(site, "gittasks.remote", before)
        raise


def own_values(site: Site, key: str) -> tuple[str, ...]:
    """Returns every value of a setting that this clone itself has."""
    told = site.repo.text("config", "--local", "--null", "--get-all", key, check=False)
    return tuple(told.split("\0")[:-1])


def put_back(site: Site, key: str, values: Sequence[str]) -> None:
    """Gives a setting of this clone the values that it had."""
    if own_values(site, key) == tuple(values):
        return
    site.repo.git("config", "--local", "--unset-all", key, check=False)
    for value in values:
        site.repo.git("config", "--local", "--add", key, value)
    site.repo.forget_config()


def keep_from_mirroring(site: Site, name: str) -> None:
    """Excepts what is written here from a fetch of the user's that overwrites and prunes it."""
    key = f"remote.{name}.fetch"
    known = site.config.get_all(key)
    ours = (site.ledger.branch, f"{HEADS}{site.branch_prefix}*", "refs/gittasks/*")
    targets = [one.partition(":")[2].partition("*")[0] for one in known if ":" in one]
    for pattern in ours:
        is_written = any(target and pattern.startswith(target) for target in targets)
        if is_written and f"^{pattern}" not in known:
            site.repo.git("config", "--local", "--add", key, f"^{pattern}")
            site.repo.forget_config()


def has_shared(site: Site) -> bool:
    """Tells whether this clone has ever spoken with a remote; costs no process."""
    return os.path.exists(os.path.join(site.state_dir, "sync.flk"))


def globs(site: Site) -> tuple[str, ...]:
    """Returns the patterns of the refs that a sync fetches beside the ledger."""
    return (f"{HEADS}{site.branch_prefix}*", LEASES)


def patience(site: Site) -> float:
    """Returns how many seconds to wait for another sync of this clone."""
    return site.config.get_seconds("gittasks.lockTimeout", LOCK_TIMEOUT)

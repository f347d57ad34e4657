"""Who is speaking: name, role and claim, resolved from flags, environment, records and place.

The order is the one of the rules for states and roles: an explicit role, the environment's, this
clone's record of the actor's claim, nobody for agents and inside a task's worktree, else the
manager. An agent that drops its environment is nobody, not the manager. A check is always the
checker's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.errors import UsageFault, WrongRole
from gittasks.domain.requests import Speaker
from gittasks.domain.task import ROLES, Role
from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

FROM_RECORD = ("submit", "feedback", "hold", "release", "prime", "whoami")
"""The verbs whose role may come from this clone's record of the actor's claim."""
FROM_STATE = ("claim", "start")
"""The verbs whose role is the owner of the task's state when nobody names one."""


class Held(NamedTuple):
    """This clone's record of one actor's claim on one task."""

    role: Role
    claim: str


class Sources(NamedTuple):
    """Everything that may say who is speaking, as found; blanks count as absent."""

    flag_actor: str | None = None
    flag_role: str | None = None
    env_actor: str | None = None
    env_role: str | None = None
    claim: str | None = None
    """The claim id of the secret given by --claim or the environment."""
    claim_role: Role | None = None
    """The role that this clone's record has for that claim."""
    user_name: str | None = None
    login: str = "unknown"
    in_tree: bool = False


def actor_of(sources: Sources) -> tuple[str, str]:
    """Returns the name of whoever speaks, and where it comes from."""
    candidates = (
        (sources.flag_actor, "--as"),
        (sources.env_actor, "GITTASKS_AGENT"),
        (sources.user_name, "user.name"),
        (sources.login, "the login name"),
    )
    for name, origin in candidates:
        if name and name.strip():
            return name.strip(), origin
    return "unknown", "nothing"


def speaker_of(
    verb: str, sources: Sources, record: Callable[[str], Held | None], owner: Role | None = None
) -> Speaker:
    """Returns who speaks for a verb; `record` looks up the actor's claim on the task at hand.

    `owner` is the role that owns the task's state, for `claim` and `start`.
    """
    sources = _without_blanks(sources)
    actor, actor_why = actor_of(sources)
    held = record(actor) if sources.claim is None else None
    claim = sources.claim or (held.claim if held else None)
    role, role_why = _role_of(verb, sources, held, owner)
    return Speaker(actor, role, claim, (actor_why, role_why))


def _without_blanks(sources: Sources) -> Sources:
    given = (sources.flag_role, sources.env_actor, sources.env_role, sources.claim)
    flag_role, env_actor, env_role, claim = ((text or "").strip() or None for text in given)
    return sources._replace(
        flag_role=flag_role, env_actor=env_actor, env_role=env_role, claim=claim
    )


def checked_role(text: str, origin: str) -> Role:
    """Returns a role by its name; raises UsageFault listing the roles there are."""
    if text not in ROLES:
        raise UsageFault(
            f"There is no role {text!r} ({origin}).", f"Give one of {', '.join(ROLES)}."
        )
    return text


def _role_of(
    verb: str, sources: Sources, held: Held | None, owner: Role | None
) -> tuple[Role | None, str]:
    from_env = checked_role(sources.env_role, "GITTASKS_ROLE") if sources.env_role else None
    if verb == "check":
        return "checker", "the verb"
    if sources.flag_role:
        role = checked_role(sources.flag_role, "--role")
        _require_same(role, from_env, "GITTASKS_ROLE")
        _require_same(role, sources.claim_role, "the claim")
        if sources.claim is not None and role == "manager":
            raise _other_role(role, "an agent", "the claim")
        return role, "--role"
    if from_env:
        return from_env, "GITTASKS_ROLE"
    if verb in FROM_RECORD:
        if sources.claim_role:
            return sources.claim_role, "the claim presented"
        if held:
            return held.role, "this clone's record of the claim"
        if sources.claim and owner:
            return owner, "the claim presented"
    if verb in FROM_STATE and owner:
        return owner, "the state of the task"
    if sources.env_actor:
        return None, "GITTASKS_AGENT without a role"
    if sources.in_tree:
        return None, "the worktree of a task"
    return "manager", "a person at this machine"


def _require_same(role: Role, other: Role | None, origin: str) -> None:
    if other is not None and other != role:
        raise _other_role(role, f"the {other}", origin)


def _other_role(role: Role, other: str, origin: str) -> WrongRole:
    return WrongRole(
        f"You ask to speak as the {role}, but {origin} says that you are {other}.",
        "Leave --role out.",
    )

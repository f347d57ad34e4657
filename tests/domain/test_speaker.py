"""Who is speaking: name, role and claim, and where each comes from."""

from __future__ import annotations

import pytest

from gittasks.domain.errors import UsageFault, WrongRole
from gittasks.domain.requests import Speaker
from gittasks.domain.speaker import FROM_RECORD, FROM_STATE, Held, Sources, actor_of, speaker_of
from gittasks.domain.task import Role
from tests.support.builders import hexadecimal

MINE, PRESENTED = hexadecimal("mine"), hexadecimal("presented")
RECORDS = {"bob": Held("worker", MINE)}
BOB = Sources(env_actor="bob")
VERBS = ("submit", "feedback", "hold", "release", "prime", "claim", "start", "note", "edit", "new")


def _speaker(verb: str, sources: Sources, owner: Role | None = None) -> Speaker:
    return speaker_of(verb, sources, RECORDS.get, owner)


# Names.


@pytest.mark.parametrize(
    ("sources", "name", "why"),
    [
        (Sources("a", None, "b", user_name="c", login="d"), "a", "--as"),
        (Sources(None, None, "b", user_name="c", login="d"), "b", "GITTASKS_AGENT"),
        (Sources(user_name="c", login="d"), "c", "user.name"),
        (Sources(login="d"), "d", "the login name"),
        (Sources(" ", None, "\t", user_name="", login=" d "), "d", "the login name"),
        (Sources(login=""), "unknown", "nothing"),
    ],
)
def test_a_name_comes_from_the_first_that_gives_one(sources: Sources, name: str, why: str) -> None:
    assert actor_of(sources) == (name, why)


# Roles.


@pytest.mark.parametrize("verb", VERBS)
def test_a_role_that_is_asked_for_is_given(verb: str) -> None:
    assert _speaker(verb, BOB._replace(flag_role="reviewer")).role == "reviewer"


@pytest.mark.parametrize("verb", VERBS)
def test_the_role_of_the_environment_comes_next(verb: str) -> None:
    found = _speaker(verb, BOB._replace(env_role="reviewer"), "designer")
    assert (found.role, found.why[1]) == ("reviewer", "GITTASKS_ROLE")


@pytest.mark.parametrize(
    "sources",
    [
        Sources(flag_role="manager", env_role="worker"),
        Sources(flag_role="reviewer", claim=PRESENTED, claim_role="worker"),
        Sources(flag_role="manager", claim=PRESENTED, claim_role="worker"),
        Sources(flag_role="manager", claim=PRESENTED),
    ],
)
def test_another_role_than_that_of_the_environment_is_refused(sources: Sources) -> None:
    with pytest.raises(WrongRole) as refused:
        _speaker("submit", sources)
    assert refused.value.hint == "Leave --role out."


@pytest.mark.parametrize(
    "sources",
    [
        Sources(flag_role="worker", env_role="worker"),
        Sources(flag_role="worker", claim=PRESENTED, claim_role="worker"),
        Sources(flag_role="worker", claim=PRESENTED),
    ],
)
def test_the_same_role_may_be_said_twice(sources: Sources) -> None:
    assert _speaker("submit", sources).role == "worker"


@pytest.mark.parametrize("sources", [Sources(flag_role="boss"), Sources(env_role="boss")])
def test_a_role_that_is_none_is_refused_with_those_there_are(sources: Sources) -> None:
    with pytest.raises(UsageFault, match="There is no role 'boss'") as refused:
        _speaker("submit", sources)
    assert refused.value.hint == (
        "Give one of manager, designer, planner, worker, checker, reviewer."
    )


@pytest.mark.parametrize("verb", FROM_RECORD)
def test_some_verbs_take_the_role_of_the_actors_record(verb: str) -> None:
    assert _speaker(verb, BOB) == Speaker(
        "bob", "worker", MINE, ("GITTASKS_AGENT", "this clone's record of the claim")
    )


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in FROM_RECORD])
def test_other_verbs_leave_an_agent_without_a_role(verb: str) -> None:
    found = _speaker(verb, BOB)
    assert (found.role, found.why[1]) == (None, "GITTASKS_AGENT without a role")


@pytest.mark.parametrize("verb", FROM_RECORD)
def test_a_record_is_used_by_its_actor_only(verb: str) -> None:
    found = _speaker(verb, Sources(user_name="eve"))
    assert (found.role, found.claim) == ("manager", None)


def test_a_person_speaks_by_the_record_of_the_name_given() -> None:
    assert _speaker("submit", Sources("bob", user_name="ada"))[:3] == ("bob", "worker", MINE)


@pytest.mark.parametrize("verb", FROM_RECORD)
def test_a_claim_that_is_presented_goes_before_the_record(verb: str) -> None:
    found = _speaker(verb, BOB._replace(claim=PRESENTED, claim_role="reviewer"))
    assert (found.role, found.claim) == ("reviewer", PRESENTED)


def test_a_claim_of_another_clone_speaks_for_the_owner_of_the_state() -> None:
    found = _speaker("submit", BOB._replace(claim=PRESENTED), "planner")
    assert (found.role, found.claim) == ("planner", PRESENTED)


@pytest.mark.parametrize("verb", FROM_RECORD)
def test_an_agent_without_any_claim_is_nobody_whoever_owns_the_state(verb: str) -> None:
    assert _speaker(verb, Sources(env_actor="eve"), "planner").role is None


def test_a_claim_of_another_clone_speaks_for_nobody_where_nobody_owns_the_state() -> None:
    assert _speaker("submit", BOB._replace(claim=PRESENTED)).role is None


@pytest.mark.parametrize("verb", FROM_STATE)
def test_who_takes_a_task_speaks_as_the_owner_of_its_state(verb: str) -> None:
    found = _speaker(verb, BOB, "designer")
    assert (found.role, found.why[1]) == ("designer", "the state of the task")


@pytest.mark.parametrize(
    ("sources", "role"),
    [
        (BOB, None),
        (Sources(user_name="ada", in_tree=True), None),
        (Sources(user_name="ada"), "manager"),
        (Sources(env_actor=" ", user_name="ada"), "manager"),
        (Sources(env_role=" ", flag_role="", claim=" ", user_name="ada"), "manager"),
    ],
)
def test_who_says_nothing_is_the_manager_unless_it_is_an_agent(
    sources: Sources, role: Role | None
) -> None:
    assert _speaker("note", sources).role == role


@pytest.mark.parametrize(
    "sources",
    [
        Sources(),
        Sources(env_role="worker", env_actor="bob"),
        Sources(flag_role="reviewer"),
        Sources(flag_role="manager", claim=PRESENTED),
        Sources(in_tree=True),
    ],
)
def test_a_check_is_always_the_checkers(sources: Sources) -> None:
    found = _speaker("check", sources)
    assert (found.role, found.why[1]) == ("checker", "the verb")

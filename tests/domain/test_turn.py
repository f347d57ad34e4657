"""What a finished turn of an agent means."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gittasks.domain.turn import (
    DEATHS,
    ISSUES,
    Again,
    Hold,
    Intent,
    Issue,
    Nudge,
    Record,
    Refusal,
    Release,
    Result,
    Turn,
    TurnOutcome,
    Wait,
    intent_of,
)

DONE = Turn("done")
LIMIT = Turn("limit", "429", until=60.0)

CASES: list[tuple[str, Turn, Intent]] = [
    ("a submit is recorded", DONE._replace(result="submit"), Record()),
    ("a feedback is recorded", DONE._replace(result="feedback"), Record()),
    ("a submit before a death is recorded", Turn("died", result="submit"), Record()),
    ("a submit before an error is recorded", Turn("error", "500", result="submit"), Record()),
    ("a submit before a limit is recorded", LIMIT._replace(result="submit"), Record()),
    (
        "a loop is answered even with a result",
        DONE._replace(result="submit", looping="ls"),
        Nudge("looping", "ls"),
    ),
    (
        "a hold is asked back once",
        DONE._replace(result="hold", reason="No key."),
        Nudge("blocked", "No key."),
    ),
    (
        "a hold that was asked back is recorded",
        DONE._replace(result="hold", attempts={"blocked": 1}),
        Record(),
    ),
    (
        "what a guard refused is answered by its name",
        DONE._replace(refusal=Refusal("uncommitted", "a.txt")),
        Nudge("uncommitted", "a.txt"),
    ),
    ("silence is a missing result", DONE, Nudge("missing-result")),
    ("a length stop is a missing result", Turn("length"), Nudge("missing-result")),
    ("a refusal of the model is a missing result", Turn("refused"), Nudge("missing-result")),
    ("an error is said again", Turn("error", "500"), Again("500")),
    (
        "an error that stays is held",
        Turn("error", "no such model", is_retryable=False),
        Hold("The agent cannot be run: no such model"),
    ),
    (
        "an error without words that stays is held",
        Turn("error", is_retryable=False),
        Hold("The agent cannot be run: it failed"),
    ),
    (
        "a provider may fail as often as it likes",
        Turn("error", "500", errors=99),
        Again("500"),
    ),
    (
        "a script may fail three times in a row",
        Turn("error", "exit code 1", errors=2, is_script=True),
        Again("exit code 1"),
    ),
    (
        "a script that fails once more is held",
        Turn("error", "exit code 1", errors=3, is_script=True),
        Hold("The agent cannot be run (4 times): exit code 1"),
    ),
    ("a limit is waited for", LIMIT, Wait(60.0, "429")),
    ("a broken turn names its command", Turn("aborted", stopped="sleep 9"), Nudge("aborted", "sleep 9")),
    ("a broken turn need not have one", Turn("aborted"), Nudge("aborted")),
    ("a death gives the task back", Turn("died", "gone"), Release("gone")),
    (
        "a death after a refused entry gives the task back",
        Turn("died", refusal=Refusal("uncommitted", "a.txt")),
        Release(""),
    ),
    (
        "one death too many holds",
        Turn("died", "gone", deaths=DEATHS - 1),
        Hold("5 agents in a row died; the last one said: gone"),
    ),
    ("it may have died silently", Turn("died", deaths=DEATHS), Hold("5 agents in a row died.")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("turn", "intent"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_a_finished_turn_has_one_meaning(turn: Turn, intent: Intent) -> None:
    assert intent_of(turn) == intent


def _turn_with(issue: Issue, attempts: int) -> Turn:
    turn = Turn("done", attempts={issue: attempts})
    match issue:
        case "missing-result":
            return turn
        case "looping":
            return turn._replace(looping="make")
        case "aborted":
            return turn._replace(outcome="aborted")
        case "blocked":
            return turn._replace(result="hold", reason="No key.")
        case _:
            return turn._replace(refusal=Refusal(issue, "See there."))


@pytest.mark.parametrize("issue", get_args(Issue))
def test_every_issue_is_answered_as_often_as_its_rule_says_and_then_holds(issue: Issue) -> None:
    limit = ISSUES[issue].attempts
    kinds = [type(intent_of(_turn_with(issue, n))) for n in range(limit + 1)]
    last = Record if issue == "blocked" else Hold
    assert kinds == [Nudge] * limit + [last]


def test_a_hold_names_the_issue_and_how_often() -> None:
    turn = Turn("done", attempts={"missing-result": 8})
    assert intent_of(turn) == Hold(
        "missing-result: the agent stopped without submit, feedback or hold, 9 times."
    )
    looping = Turn("done", attempts={"looping": 3}, looping="make test")
    assert intent_of(looping) == Hold(
        "looping: the agent kept repeating one call, 4 times: make test"
    )


@given(
    st.builds(
        Turn,
        outcome=st.sampled_from(get_args(TurnOutcome)),
        error=st.sampled_from(["", "500"]),
        is_retryable=st.booleans(),
        looping=st.sampled_from([None, "ls"]),
        result=st.sampled_from([None, *get_args(Result)]),
        refusal=st.sampled_from([None, Refusal("uncommitted", "a.txt")]),
        attempts=st.dictionaries(st.sampled_from(get_args(Issue)), st.integers(0, 9)),
        deaths=st.integers(0, 6),
    )
)
def test_no_turn_loses_what_was_handed_in(turn: Turn) -> None:
    intent = intent_of(turn)
    if turn.result in ("submit", "feedback") and turn.looping is None:
        assert intent == Record()
    if turn.result is None:
        assert intent != Record()

"""Settles a finished turn: gathers the facts, asks what they mean, and carries it out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, cast

from gittasks.domain import schedule
from gittasks.domain import turn as turns
from gittasks.domain.errors import Busy, GittasksError, GuardBroken, Taken, UnknownTask, UsageFault
from gittasks.domain.pool import agent_name
from gittasks.domain.task import Cost
from gittasks.workflow import settle
from gittasks.workspaces import records, runs

if TYPE_CHECKING:
    from collections.abc import Callable

    from gittasks.runner.seat import Seat, Stint
    from gittasks.runner.team import Team
    from gittasks.workflow.settle import Entry
    from gittasks.workspaces.records import ClaimRecord
    from gittasks.workspaces.runs import RunRecord

SCRIPTS = ("command", "scripted")
"""The types of agents that ask no provider."""

KEPT_WAITING = 300.0
"""How many seconds an agent keeps its task while its provider's limit lasts; longer, it gives it back."""


class Handed(NamedTuple):
    """What lies in an outbox: the last valid result, or why the last one is not valid."""

    result: Entry | None = None
    refusal: turns.Refusal | None = None
    is_stale: bool = False


def settle_turn(runner: Team, seat: Seat) -> None:
    """Does what a finished turn asks for; never raises for what an agent has done."""
    stint = seat.stint
    assert stint is not None
    try:
        _settle(runner, seat, stint)
    except (Taken, UnknownTask) as error:
        # Somebody else has the task by now: whatever this agent made stays on its branch.
        runner.tell("lost", seat, error=error.message)
        runner.end(seat)


def _settle(runner: Team, seat: Seat, stint: Stint) -> None:
    stint = _with_present_record(runner, seat, stint)
    trouble = runner.apart.harvest(stint.run)
    handed = take_notes_and_results(runner, stint.run, stint.record)
    if handed.is_stale:
        runner.tell("lost", seat, error="The claim is over.")
        runner.end(seat)
        return
    turn = _turn(runner, seat, stint, handed)
    if trouble is not None and turn.refusal is None:
        turn = turn._replace(result=None, refusal=turns.Refusal("uncommitted", trouble))
    if turn.outcome not in ("error", "limit"):
        runner.provider(seat.entry).is_well()
    intent = turns.intent_of(turn)
    match intent:
        case turns.Record():
            assert handed.result is not None
            _record(runner, seat, stint, handed.result)
        case turns.Nudge():
            _nudge(runner, seat, stint, intent)
        case turns.Hold():
            _hold(runner, seat, stint, intent.reason)
        case turns.Again():
            _again(runner, seat, intent)
        case turns.Wait():
            _wait(runner, seat, intent)
        case turns.Release():
            runner.provider(seat.entry).has_failed(runner.now)
            give_back(runner, seat, died=True, reason=intent.error)


def _with_present_record(runner: Team, seat: Seat, stint: Stint) -> Stint:
    """Returns the stint with the record as it is now: the assignment may have been handed out again."""
    record = records.with_claim(runner.project.state_dir, stint.run.claim)
    if record is not None and record != stint.record:
        stint = stint._replace(record=record)
        seat.stint = stint
    return stint


def take_notes_and_results(runner: Team, run: RunRecord, record: ClaimRecord) -> Handed:
    """Records the notes of an outbox and returns what its results come to.

    Raises Busy where that can be known only later.
    """
    found = settle.found_in(run.outbox)
    for fault in found.faults:
        runner.say("outbox", slot=run.slot, task=run.task, error=fault)
    for entry in settle.notes(found.entries):
        try:
            settle.record_entry(runner.project, entry, record)
        except Busy:
            raise
        except GittasksError as error:
            runner.say("outbox", slot=run.slot, task=run.task, error=error.message)
        settle.drop(entry)
    return _judged(runner, record, settle.results(found.entries))


def _judged(runner: Team, record: ClaimRecord, results: tuple[Entry, ...]) -> Handed:
    refusal: turns.Refusal | None = None
    for entry in results:
        try:
            settle.require_recordable(runner.project, entry, record)
        except GuardBroken as error:
            refusal = refusal or turns.Refusal(cast("turns.Issue", error.issue), _words(error))
        except (Taken, UnknownTask):
            return Handed(is_stale=True)
        except Busy:
            raise
        except (GittasksError, UsageFault) as error:
            refusal = refusal or turns.Refusal("missing-result", _words(error))
        else:
            return Handed(entry)
    try:
        settle.require_present(runner.project, record)
    except (Taken, UnknownTask):
        return Handed(is_stale=True)
    return Handed(None, refusal)


def _words(error: GittasksError) -> str:
    return f"{error.message} {error.hint}" if error.hint else error.message


def _turn(runner: Team, seat: Seat, stint: Stint, handed: Handed) -> turns.Turn:
    settled = seat.settled
    outcome: turns.TurnOutcome = "died" if settled is None else settled.outcome
    error = (seat.died or "") if settled is None else settled.error
    if handed.result is None and not os.path.isdir(stint.spec.tree):
        # Nobody can go on there; whoever comes next is given the tree anew.
        outcome, error = "died", "it has removed its own tree"
    return turns.Turn(
        outcome=outcome,
        error=error,
        is_retryable=settled is None or settled.is_retryable,
        until=None if settled is None else settled.until,
        looping=seat.looping,
        stopped=seat.stopped,
        result=None if handed.result is None else cast("turns.Result", handed.result.verb),
        reason="" if handed.result is None else handed.result.reason,
        refusal=handed.refusal,
        attempts=seat.attempts,
        deaths=settle.deaths_of(runner.project, stint.run.task) if outcome == "died" else 0,
        errors=seat.errors,
        is_script=seat.entry.type in SCRIPTS,
    )


def _record(runner: Team, seat: Seat, stint: Stint, entry: Entry) -> None:
    cost = cost_of(runner, seat, stint)
    outcome = settle.record_entry(runner.project, entry, stint.record, cost)
    runner.has_written()
    _keep_session(runner, seat, stint, entry)
    runner.tell(
        "settled", seat, verb=entry.verb, source=outcome.source, target=outcome.target,
        cost=cost.cost, tokens=cost.tokens,
    )  # fmt: skip
    runner.end(seat)


def _keep_session(runner: Team, seat: Seat, stint: Stint, entry: Entry) -> None:
    """Remembers who can go on if the checks refuse what was submitted; else nobody can."""
    state_dir, uid = runner.project.state_dir, stint.run.uid
    session = seat.agent.session if seat.agent is not None else None
    if stint.run.state != "WORK":
        if entry.verb == "feedback":
            # Whoever redoes what a review sent back begins afresh.
            runs.drop_session(state_dir, uid)
        return
    if entry.verb != "submit" or session is None or not stint.can_resume or entry.tip is None:
        runs.drop_session(state_dir, uid)
        return
    kept = runs.Session(
        agent_name(seat.entry), session, entry.tip, seat.usage.cost, seat.usage.tokens
    )
    runs.keep_session(state_dir, uid, kept)


def _nudge(runner: Team, seat: Seat, stint: Stint, intent: turns.Nudge) -> None:
    seat.attempts[intent.issue] = seat.attempts.get(intent.issue, 0) + 1
    seat.errors = 0
    for entry in settle.results(settle.found_in(stint.run.outbox).entries):
        settle.drop(entry)
    runner.tell("nudge", seat, issue=intent.issue, attempt=seat.attempts[intent.issue])
    seat.say(runner.wording.nudge(stint, intent.issue, intent.detail), runner.now)


def _hold(runner: Team, seat: Seat, stint: Stint, reason: str) -> None:
    cost = cost_of(runner, seat, stint)
    settle.hold(runner.project, stint.record, reason, cost)
    runner.has_written()
    runs.drop_session(runner.project.state_dir, stint.run.uid)
    runner.tell("held", seat, reason=reason, cost=cost.cost, tokens=cost.tokens)
    runner.end(seat)


def hold_now(runner: Team, seat: Seat, reason: str) -> None:
    """Ends the agent of a seat that is at work, and holds its task unless it has handed in."""
    assert seat.stint is not None
    cost = cost_of(runner, seat, seat.stint)

    def held(stint: Stint) -> None:
        if _is_handed_in(runner, stint, cost):
            return
        settle.hold(runner.project, stint.record, reason, cost)
        runner.has_written()
        runs.drop_session(runner.project.state_dir, stint.run.uid)

    runner.tell("held", seat, reason=reason)
    runner.end(seat, _unless_lost(runner, held))


def _again(runner: Team, seat: Seat, intent: turns.Again) -> None:
    seat.errors += 1
    if seat.entry.type in SCRIPTS:
        # A script that fails says nothing about the others.
        due = runner.now + schedule.back_off(seat.errors)
    else:
        due = runner.provider(seat.entry).has_failed(runner.now, intent.error)
    runner.tell("retry", seat, error=intent.error, attempt=seat.errors, due=due)
    seat.wait_until(due, f"the provider failed: {intent.error}")


def _wait(runner: Team, seat: Seat, intent: turns.Wait) -> None:
    provider = runner.provider(seat.entry)
    until = provider.is_limited(runner.now, intent.until)
    runner.tell("limit", seat, until=until, error=intent.error)
    if until - runner.now > KEPT_WAITING:
        limit = f"The limit of {provider.name} lasts too long to wait for it."
        give_back(runner, seat, died=False, reason=limit)
        return
    seat.wait_until(until, provider.limit_in_words)


def give_back(runner: Team, seat: Seat, *, died: bool, reason: str) -> None:
    """Ends the agent of a seat, and gives its task back when nothing of it is left."""
    assert seat.stint is not None
    cost = cost_of(runner, seat, seat.stint)

    def given_back(stint: Stint) -> None:
        settle.give_back(runner.project, stint.record, died=died, reason=reason or None, cost=cost)
        runner.has_written()

    runner.tell("died" if died else "released", seat, error=reason, cost=cost.cost)
    runner.end(seat, _unless_lost(runner, given_back))


def stop(runner: Team, seat: Seat, reason: str) -> None:
    """Ends the agent of a seat in the middle of its work; what it has handed in is recorded."""
    stint = seat.stint
    assert stint is not None
    cost = cost_of(runner, seat, stint)

    def stopped(stint: Stint) -> None:
        if _is_handed_in(runner, stint, cost):
            return
        settle.give_back(runner.project, stint.record, died=False, reason=reason, cost=cost)
        runner.has_written()

    seat.interrupt(runner.now)
    runner.tell("released", seat, error=reason, cost=cost.cost)
    runner.end(seat, _unless_lost(runner, stopped))


def _is_handed_in(runner: Team, stint: Stint, cost: Cost) -> bool:
    """Records what an agent that was ended has left; tells whether that ends its claim."""
    handed = take_notes_and_results(runner, stint.run, stint.record)
    if handed.result is not None:
        settle.record_entry(runner.project, handed.result, stint.record, cost)
    runner.has_written()
    return handed.result is not None or handed.is_stale


def _unless_lost(runner: Team, do: Callable[[Stint], None]) -> Callable[[Stint], None]:
    """Returns what closes a claim, and lets it be where somebody else has closed it meanwhile."""

    def close(stint: Stint) -> None:
        record = records.with_claim(runner.project.state_dir, stint.run.claim)
        try:
            do(stint if record is None else stint._replace(record=record))
        except (Taken, UnknownTask) as error:
            runner.say("lost", slot=stint.run.slot, task=stint.run.task, error=error.message)

    return close


def cost_of(runner: Team, seat: Seat, stint: Stint) -> Cost:
    """Returns what the claim of a seat has cost up to now."""
    seconds = max(0, round(runner.now - stint.run.started_at))
    carried_cost, carried_tokens = stint.run.carried
    # A session that was resumed may count from its beginning, or anew.
    is_carried = seat.usage.tokens >= carried_tokens and seat.usage.cost >= carried_cost
    priced = seat.usage.cost - carried_cost if is_carried else seat.usage.cost
    tokens = seat.usage.tokens - carried_tokens if is_carried else seat.usage.tokens
    money = schedule.cost_of(seat.entry, seconds, priced)
    return Cost(stint.record.state, seat.name, seconds, money, tokens)  # type: ignore[arg-type]  # a record holds a state

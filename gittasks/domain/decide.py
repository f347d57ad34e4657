"""`decide`: from the graph, a request and facts to events, or to a refusal that names the way out.

Pure and total: whoever loses a race calls it again on the fresh graph. Checks come in one order:
malformed input, unknown id, state and role, claim, guard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from gittasks.domain import machine
from gittasks.domain.errors import GuardBroken, Refused, Taken
from gittasks.domain.requests import (
    Abort,
    Claim,
    Create,
    Edit,
    Facts,
    Feedback,
    Hold,
    Note,
    RecordCheck,
    Release,
    Reorder,
    Reparent,
    Request,
    Resume,
    Submit,
)
from gittasks.domain.rules.decision import Decision

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gittasks.domain.events import Event
    from gittasks.domain.task import Task
    from gittasks.domain.task_graph import Graph


def decide(graph: Graph, request: Request, facts: Facts) -> list[Event]:
    """Returns the events that carry a request out, none when it is done already, or refuses."""
    return decide_all(graph, (request,), facts)


def decide_all(graph: Graph, requests: Iterable[Request], facts: Facts) -> list[Event]:
    """Returns the events of several requests, each decided on what the ones before have made."""
    decision = Decision(graph, facts)
    for request in requests:
        carry_out(decision, request)
    return decision.events


def carry_out(decision: Decision, request: Request) -> None:
    """Adds a request's events to a decision, or raises a refusal, which ends the decision."""
    try:
        _carry_out(decision, request)
    except (Refused, Taken) as refusal:
        if isinstance(refusal, GuardBroken) or not _is_repeat(decision, request):
            raise


def _carry_out(decision: Decision, request: Request) -> None:
    # One command asks for one thing and pays for the rules of that one only.
    match request:
        case Create():
            from gittasks.domain.rules.create import create

            create(decision, request)
        case Submit():
            from gittasks.domain.rules.submit import submit

            submit(decision, request)
        case Feedback() | RecordCheck():
            from gittasks.domain.rules import review

            if isinstance(request, Feedback):
                review.feedback(decision, request)
            else:
                review.record_check(decision, request)
        case Hold() | Resume() | Abort():
            _stop(decision, request)
        case Claim() | Release():
            from gittasks.domain.rules import claim

            if isinstance(request, Claim):
                claim.claim(decision, request)
            else:
                claim.release(decision, request)
        case Edit() | Note():
            from gittasks.domain.rules import edit

            if isinstance(request, Edit):
                edit.edit(decision, request)
            else:
                edit.note(decision, request)
        case Reparent() | Reorder():
            from gittasks.domain.rules import order

            if isinstance(request, Reparent):
                order.reparent(decision, request)
            else:
                order.reorder(decision, request)
        case _:
            assert_never(request)


def _stop(decision: Decision, request: Hold | Resume | Abort) -> None:
    from gittasks.domain.rules import stop

    match request:
        case Hold():
            stop.hold(decision, request)
        case Resume():
            stop.resume(decision, request)
        case Abort():
            stop.abort(decision, request)
        case _:
            assert_never(request)


def _is_repeat(decision: Decision, request: Request) -> bool:
    if isinstance(request, Create):
        return False
    task = decision.task(request.task)
    match request:
        case Submit():
            return _is_repeated_submit(decision, task)
        case Hold() if task.state in machine.HELD:
            return _latest_is(decision, task, "hold")
        case Abort() if task.outcome == "aborted":
            return decision.facts.speaker.role == "manager"
        case Release() if task.claim is None:
            return _was_last_holder(decision, task)
        case Resume():
            return decision.facts.speaker.role == "manager" and _latest_is(decision, task, "resume")
        case _:
            return False


def _latest_transition(decision: Decision, task: Task, skipped: Sequence[str] = ()) -> Event | None:
    for event in decision.facts.history(task.id):
        if event.is_transition and event.kind not in skipped:
            return event
    return None


def _latest_is(decision: Decision, task: Task, kind: str) -> bool:
    latest = _latest_transition(decision, task)
    return (
        latest is not None and latest.kind == kind and latest.actor == decision.facts.speaker.actor
    )


def _is_repeated_submit(decision: Decision, task: Task) -> bool:
    if decision.facts.speaker.role == "manager":
        return task.is_landed
    latest = _latest_transition(decision, task, machine.REPEATABLE_AFTER)
    return latest is not None and latest.kind == "submit" and _is_own(decision, latest)


def _was_last_holder(decision: Decision, task: Task) -> bool:
    claims = (e for e in decision.facts.history(task.id) if e.claim is not None)
    latest = next(claims, None)
    return latest is not None and _is_own(decision, latest)


def _is_own(decision: Decision, event: Event) -> bool:
    """Tells whether the speaker ended a claim with this event, by the claim presented or by name.

    The same name in another clone is somebody else.
    """
    speaker = decision.facts.speaker
    if event.claim is None or (speaker.claim is not None and speaker.claim != event.claim):
        return False
    return event.actor == speaker.actor and event.host == decision.facts.host

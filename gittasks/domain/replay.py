"""What becomes of events that one clone has written alone, on top of what all others agreed on.

Each is decided again, in order, by the rules that decide everything else. It keeps its id, its
author and its time; where it does not fit any more, an event with the same id says so and carries
its message, so that nothing disappears and nothing is ever there twice.

| event of this clone | on top of the others |
|---|---|
| create | applied; a taken number is replaced by a free one, and a `renumber` tells of it |
| claim of a task that is claimed, moved on or closed | lost, which is nothing for the manager |
| whatever was said under a lost or ended claim | not applied |
| verdict (review, landing) on a document that changed | not applied: it has to be looked at again |
| submit from a text or checks that changed | not applied: `assignment-changed` |
| dependency | added unless it closes a ring |
| body edit | merged with theirs; where both changed one place theirs stays, and ours becomes a note |
| field edit | applied unless the field was changed by others too |
| edit of a task that was closed | becomes a note |
| setting | applied unless it was changed by others too |
| other verbs | decided again |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from gittasks.domain import machine
from gittasks.domain.decide import carry_out
from gittasks.domain.errors import GittasksError, GuardBroken, Refused, StaleClaim, Taken
from gittasks.domain.events import (
    Aborted,
    CheckPassed,
    CheckRefuted,
    Claimed,
    Configured,
    Created,
    Edited,
    Event,
    ExternallyChanged,
    FeedbackGiven,
    Held,
    Initialized,
    Noted,
    Rejected,
    Released,
    Renumbered,
    Reordered,
    Reparented,
    Resumed,
    Submitted,
    Unblocked,
)
from gittasks.domain.ids import task_id
from gittasks.domain.requests import (
    Claim,
    Edit,
    Facts,
    Hold,
    RecordCheck,
    Reparent,
    Resume,
    Speaker,
    Submit,
)
from gittasks.domain.rules.decision import Decision, require_no_ring, unblock, unblock_after
from gittasks.domain.task_graph import Graph, Overlay, evolve
from gittasks.domain.text_merge import merged
from gittasks.domain.times import seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gittasks.domain.config import Project
    from gittasks.domain.requests import Request
    from gittasks.domain.task import Task

TEXT_LIMIT = 500_000
"""The most bytes of a kept text that one message takes; a longer one comes in parts."""


class Local(NamedTuple):
    """One event that only this clone has: with its message, and the task and text it acted on."""

    event: Event
    message: str
    task: Task | None = None
    body: bytes = b""
    settings: Project | None = None
    """The shared settings, or with `text` a shared text, before an event that changed them."""
    text: bytes | None = None


class Step(NamedTuple):
    """One event to write, and the place of the local one that it stands for, if it does."""

    event: Event
    source: int | None = None


class Lost(NamedTuple):
    """A claim of this clone that did not count: which task, by which branch, and why."""

    task: str
    uid: str
    claim: str
    actor: str
    branch: str
    reason: str


class Renaming(NamedTuple):
    """A task that got another number, or another branch, when it met the others' tasks."""

    uid: str
    old: str
    new: str
    branch: tuple[str, str] | None = None


class Replayed(NamedTuple):
    """What became of all events, and what whoever made them has to be told."""

    steps: tuple[Step, ...]
    renamed: tuple[Renaming, ...] = ()
    lost: tuple[Lost, ...] = ()
    rejected: tuple[tuple[Event, str], ...] = ()
    notes: tuple[str, ...] = ()


class Common(NamedTuple):
    """What all clones agree on, as far as a replay asks for it."""

    graph: Graph
    settings: Project
    text: Callable[[str], bytes | None]
    """Gives a shared text by its path."""
    history: Callable[[str], Iterable[Event]]
    """Gives the events of a task, newest first."""
    branch_prefix: str = "task/"
    branches: Callable[[str], str | None] = lambda _name: None
    """Gives the uid of the task that has recorded a branch."""
    is_unreadable: Callable[[str], bool] = lambda _number: False
    """Tells whether a number belongs to a document that cannot be read."""


def replay(common: Common, local: Sequence[Local]) -> Replayed:
    """Returns what to write on top of what the others have, event by event."""
    return _Replay(common, local).run()


class _NotApplied(Exception):
    """An event does not fit; `quiet` is nothing for the manager."""

    def __init__(self, reason: str, *, quiet: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.quiet = quiet


class _Replay:
    def __init__(self, common: Common, local: Sequence[Local]) -> None:
        self.common = common
        self.local = local
        self.graph = Overlay(common.graph)
        self.settings = common.settings
        self.texts: dict[str, bytes | None] = {}
        self.steps: list[Step] = []
        self.taken: set[int] = set()
        self.ids: dict[str, str] = {}
        self.branches: dict[str, tuple[str, str]] = {}
        self.renamed: list[Renaming] = []
        self.lost: dict[str, Lost] = {}
        self.same: set[str] = set()
        self.rejected: list[tuple[Event, str]] = []
        self.notes: list[str] = []
        self.numbers = {
            one.event.task for one in local if one.event.source is None and one.event.task
        }

    def run(self) -> Replayed:
        for place, one in enumerate(self.local):
            if place not in self.taken:
                self._take(place, one)
        return Replayed(
            tuple(self.steps),
            tuple(self.renamed),
            tuple(self.lost.values()),
            tuple(self.rejected),
            tuple(self.notes),
        )

    def _take(self, place: int, one: Local) -> None:
        event = one.event
        try:
            if not event.is_about_a_task:
                self._take_project(place, one)
            elif event.source is None:
                self._take_create(place, one)
            else:
                self._take_step(place, one)
        except _NotApplied as refusal:
            self._reject(place, one, refusal.reason, quiet=refusal.quiet)
        except GuardBroken as refusal:
            self._reject(place, one, f"{refusal.issue}: {_sentence(refusal)}")
        except GittasksError as refusal:
            self._reject(place, one, _sentence(refusal))

    # -------------------------------------------------------------------------- writing events

    def _put(self, event: Event, place: int | None) -> None:
        """Adds one event that is legal where it stands; raises _NotApplied for another one."""
        task = None if event.task is None else self.graph.get(event.task)
        objection = machine.objection(self.graph, event)
        if objection is not None:
            raise _NotApplied(objection)
        if event.is_about_a_task:
            body = b"" if task is None else self.graph.body(task.id)
            after, body_after = evolve(task, body, event)
            self.graph.put(after, None if task is not None and body_after is body else body_after)
        self.steps.append(Step(event, place))

    def _again(self, event: Event, task: Task, **changes: Any) -> Event:
        """Returns an event as it is said now about a task that may have moved or been renamed."""
        target = task.state if event.source == event.target else event.target
        fields = {"task": task.id, "source": task.state, "target": target, **changes}
        return event._replace(revision=None, document=None, **fields)

    def _decide(self, place: int, one: Local, request: Request, kind: str) -> None:
        """Carries a request out as whoever made the event, who keeps what it was called."""
        event = one.event
        decision = self._decision(event)
        carry_out(decision, request)
        made = [step for step in decision.events if step.kind == kind]
        if not made:
            raise _NotApplied("it is so already", quiet=True)
        self._add_all(place, one, decision, made[0])

    def _decision(self, event: Event) -> Decision:
        role = None if event.role == "none" else event.role
        facts = Facts(
            now=event.at,
            host=event.host,
            speaker=Speaker(event.actor, role, event.claim),
            rejection_limit=self.settings.rejection_limit,
            check_failure_limit=self.settings.check_failure_limit,
            history=self._history,
        )
        return Decision(self.graph, facts)

    def _history(self, task: str) -> Iterator[Event]:
        for step in reversed(self.steps):
            if step.event.task == task:
                yield step.event
        yield from self.common.history(task)

    def _add_all(self, place: int, one: Local, decision: Decision, main: Event) -> None:
        """Adds what a decision says; what follows from it takes the place of what followed then."""
        for made in decision.events:
            if made is main:
                event = one.event
                self._put(
                    made._replace(
                        event_id=event.event_id, at=event.at, text=event.text, commit=event.commit
                    ),
                    place,
                )
                continue
            follower = self._follower(place, made)
            if follower is None:
                word = f"{made.kind} {made.uid}"
                made = made._replace(event_id=derived(one.event.event_id, word))  # noqa: PLW2901
                self._put(made, None)
            else:
                self.taken.add(follower)
                then = self.local[follower].event
                self._put(made._replace(event_id=then.event_id, at=then.at), follower)

    def _follower(self, place: int, made: Event) -> int | None:
        """Returns the place of the local event that was a consequence of the one at `place`."""
        for at in range(place + 1, len(self.local)):
            event = self.local[at].event
            if at not in self.taken and (event.kind, event.uid) == (made.kind, made.uid):
                return at
        return None

    def _reject(self, place: int, one: Local, reason: str, *, quiet: bool = False) -> None:
        """Keeps the message of an event that is not applied, under the event's own id."""
        event = one.event
        self.rejected.append((event, reason))
        parts = _parts(one.message + self._unsaid(one))
        known = None if event.uid is None else self.graph.with_uid(event.uid)
        task = None if known is None else self.graph.get(known)
        for number, text in enumerate(parts, 1):
            change = Rejected(event.kind, reason, quiet, number, len(parts))
            said = Event(
                event_id=event.event_id if number == 1 else derived(event.event_id, f"{number}"),
                at=event.at,
                actor=event.actor,
                role="tool",
                host=event.host,
                change=change,
                task=task.id if task else None,
                uid=task.uid if task else None,
                source=task.state if task else None,
                target=task.state if task else None,
                text=text,
            )
            self._put(said, place if number == 1 else None)
            task = self.graph.get(task.id) if task else None

    def _unsaid(self, one: Local) -> str:
        """Returns the text that an event brought beside its message."""
        body = one.event.body
        if body is None:
            return ""
        new = body[len(one.body) :] if one.body and body.startswith(one.body) else body
        return "\n" + new.decode("utf-8", "replace") if new else ""

    # ---------------------------------------------------------------------- events of the project

    def _take_project(self, place: int, one: Local) -> None:
        event = one.event
        match event.change:
            case Initialized(project=pairs):
                self._take_settings(place, one, pairs, (), begins=True)
            case Configured(path=None, set=pairs, unset=unset):
                self._take_settings(place, one, pairs, unset)
            case Configured(path=str(path)):
                now = self.texts.get(path, self.common.text(path))
                if event.body != now:
                    if now != one.text:
                        raise _NotApplied(f"others have changed {path} too")
                    self.texts[path] = event.body
                    self._put(event._replace(document=None), place)
            case _:
                # One that was kept already is kept again.
                self._put(event, place)

    def _take_settings(
        self,
        place: int,
        one: Local,
        pairs: Iterable[tuple[str, Any]],
        unset: Iterable[str],
        *,
        begins: bool = False,
    ) -> None:
        """Applies the settings that nobody else has changed; of the others, theirs stays."""
        defaults = type(self.settings)._field_defaults
        wanted = {name: tuple(v) if isinstance(v, list) else v for name, v in pairs}
        wanted |= {name: defaults.get(name) for name in unset}
        now, was = self.settings._asdict(), one.settings._asdict() if one.settings else {}
        wanted = {name: value for name, value in wanted.items() if now.get(name) != value}
        lost = [name for name in wanted if begins or now.get(name) != was.get(name, now.get(name))]
        if not wanted:
            return
        words = ", ".join(f"{name} stays {_shown(now.get(name))}" for name in lost)
        if len(lost) == len(wanted):
            raise _NotApplied(f"others have set {', '.join(lost)} too: {words}")
        kept: dict[str, Any] = {n: value for n, value in wanted.items() if n not in lost}
        self.settings = self.settings._replace(**kept)
        set_ = tuple((n, v) for n, v in kept.items() if n not in defaults or v != defaults[n])
        dropped = tuple(n for n in kept if n not in dict(set_))
        self._put(one.event._replace(change=Configured(set_, dropped), document=None), place)
        if lost:
            self.notes.append(f"Others have set {', '.join(lost)} too: {words}.")

    # ------------------------------------------------------------------------------- new tasks

    def _take_create(self, place: int, one: Local) -> None:
        event = one.event
        assert event.task is not None
        assert event.uid is not None
        present = self.graph.with_uid(event.uid)
        if present is not None:
            # The same idempotency key in two clones is one task.
            self.ids[event.task] = present
            self.same.add(event.uid)
            raise _NotApplied(f"the task is {present} already", quiet=True)
        number = event.task
        if self._is_taken(number):
            number = self._free()
            self.ids[event.task] = number
        change, said = self._linked(event)
        if number != event.task and isinstance(change, Created):
            change = change._replace(former_ids=(*change.former_ids, event.task))
        made = event._replace(task=number, change=change, document=None)
        self._put(made, place)
        if number != event.task:
            self._tell_number(event, number)
        if said is not None:
            task = self.graph.get(number)
            assert task is not None
            kept = Noted(attention=said)
            self._put(self._about(task, kept, event, "link"), None)

    def _is_taken(self, number: str) -> bool:
        return self.graph.get(number) is not None or self.common.is_unreadable(number)

    def _free(self) -> str:
        """Returns the lowest number above all in use that no task of this clone has either."""
        number = self.graph.last_id() + 1
        while task_id(number) in self.numbers:
            number += 1
        return task_id(number)

    def _linked(self, event: Event) -> tuple[Created | ExternallyChanged, str | None]:
        """Returns the create with the present numbers, without links that nobody may make now."""
        change = event.change
        if isinstance(change, ExternallyChanged):
            pairs = tuple((name, self._mapped(name, value)) for name, value in change.set)
            return change._replace(set=pairs), None
        assert isinstance(change, Created)
        names = ("depends_on", "parent", "supersedes", "follows")
        change = change._replace(**{n: self._mapped(n, getattr(change, n)) for n in names})
        said = []
        parent = self.graph.get(change.parent) if change.parent else None
        if parent is not None and not parent.is_open:
            said.append(f"its parent {parent.id} was closed meanwhile")
            change = change._replace(parent=None, follows=change.follows or parent.id)
        old = self.graph.get(change.supersedes) if change.supersedes else None
        if old is not None and old.is_landed:
            said.append(f"{old.id}, which it was to supersede, has landed meanwhile")
            change = change._replace(supersedes=None, follows=change.follows or old.id)
        return change, " and ".join(said) or None

    def _mapped(self, name: str, value: Any) -> Any:
        if name == "depends_on":
            return tuple(dict.fromkeys(self.ids.get(one, one) for one in value))
        if name in ("parent", "supersedes", "follows") and value is not None:
            return self.ids.get(value, value)
        return value

    def _tell_number(self, event: Event, number: str) -> None:
        assert event.task is not None
        assert event.uid is not None
        task = self.graph.get(number)
        assert task is not None
        change = Renumbered(event.task, number)
        self._put(self._about(task, change, event, f"renumber {number}", role="tool"), None)
        self.renamed.append(Renaming(event.uid, event.task, number))

    def _about(self, task: Task, change: Any, because: Event, word: str, **fields: Any) -> Event:
        """Returns an event that follows from another one and leaves the state as it is."""
        base: dict[str, Any] = {
            "event_id": derived(because.event_id, word),
            "at": because.at,
            "actor": because.actor,
            "role": because.role,
            "host": because.host,
            "change": change,
            "task": task.id,
            "uid": task.uid,
            "source": task.state,
            "target": task.state,
        }
        return Event(**{**base, **fields})

    # -------------------------------------------------------------------------- steps of a task

    def _take_step(self, place: int, one: Local) -> None:
        event = one.event
        known = None if event.uid is None else self.graph.with_uid(event.uid)
        task = None if known is None else self.graph.get(known)
        if task is None:
            raise _NotApplied(f"the task {event.task} does not exist")
        if event.claim is not None and event.claim in self.lost and event.kind != "claim":
            raise _NotApplied(
                f"its claim was lost: {self.lost[event.claim].reason}",
                quiet=isinstance(event.change, Released),
            )
        match event.change:
            case Claimed():
                self._claim(place, one, task)
            case Submitted() if event.source in ("NEW", "BLOCKED"):
                self._dispatch(place, one, task)
            case Submitted() | FeedbackGiven():
                self._verdict(place, one, task)
            case CheckPassed() | CheckRefuted():
                self._check(place, one, task)
            case Unblocked():
                self._unblock(place, one, task)
            case Released():
                if task.claim != event.claim:
                    raise _NotApplied("the claim has ended already", quiet=True)
                self._put(self._again(event, task), place)
            case _:
                self._take_other(place, one, task)

    def _take_other(self, place: int, one: Local, task: Task) -> None:
        event = one.event
        match event.change:
            case Held(reason=reason, cost=cost):
                self._decide(place, one, Hold(task.id, reason, cost), "hold")
            case Resumed(remark=remark):
                self._decide(place, one, Resume(task.id, remark), "resume")
            case Aborted():
                if event.source in machine.ABORTABLE and task.state not in machine.ABORTABLE:
                    raise _NotApplied(f"the task is at {task.state}")
                self._put(self._again(event, task, claim=task.claim), place)
            case Edited() | ExternallyChanged():
                self._edit(place, one, task)
            case Noted(attention=None) if not task.is_open:
                words = f"a note by {event.actor} came after the close"
                change = event.change._replace(attention=words)
                self._put(self._again(event, task, change=change), place)
            case Reparented(parent=parent):
                self._require_unchanged(one, task, "parent")
                self._decide(place, one, Reparent(task.id, self._mapped("parent", parent)),
                             "reparent")  # fmt: skip
            case Reordered():
                self._require_unchanged(one, task, "parent", "position")
                self._put(self._again(event, task), place)
            case Renumbered(old=old):
                self._put(self._again(event, task, change=Renumbered(old, task.id)), place)
            case _:
                self._put(self._again(event, task), place)

    def _claim(self, place: int, one: Local, task: Task) -> None:
        event, change = one.event, cast("Claimed", one.event.change)
        assert event.claim is not None
        reason = None
        if not task.is_open:
            reason = "the task is closed"
        elif task.state != event.source:
            reason = f"the task has moved on to {task.state}"
        elif task.claim is not None:
            reason = f"the task was claimed by {task.claimed_by}"
        if reason is None:
            branch = self._branch(task, change)
            request = Claim(
                task.id, event.claim, seconds_of(change.lease_expires), branch, change.base,
                change.dispatched, change.assignment,
            )  # fmt: skip
            try:
                self._decide(place, one, request, "claim")
                return
            except (Refused, Taken) as refusal:
                reason = _sentence(refusal)
        self.lost[event.claim] = Lost(
            task.id, task.uid, event.claim, event.actor, change.branch, reason
        )
        raise _NotApplied(reason, quiet=True)

    def _branch(self, task: Task, change: Claimed) -> str:
        """Returns the name of the branch, another one where a task of the others has taken it."""
        if task.branch == change.branch:
            return change.branch
        known = self.branches.get(change.branch)
        if known is not None and known[0] == task.uid:
            return known[1]
        owner = self.common.branches(change.branch)
        if task.branch is None and (owner is None or owner == task.uid):
            return change.branch
        name = task.branch or f"{self.common.branch_prefix}{task.id}-{task.uid[:4]}"
        self.branches[change.branch] = (task.uid, name)
        self.renamed.append(Renaming(task.uid, task.id, task.id, (change.branch, name)))
        return name

    def _dispatch(self, place: int, one: Local, task: Task) -> None:
        event, change = one.event, cast("Submitted", one.event.change)
        if task.uid in self.same and task.state not in ("NEW", "BLOCKED"):
            raise _NotApplied("it is so already", quiet=True)
        if change.outcome is not None:
            request = Submit(task.id, close=True, remark=change.remark)
        else:
            entry = change.enters if event.target == "BLOCKED" else event.target
            request = Submit(task.id, enter=entry, remark=change.remark)
        self._decide(place, one, request, "submit")

    def _verdict(self, place: int, one: Local, task: Task) -> None:
        """Applies what an author, a reviewer or the manager said of what they had before them."""
        event, change = one.event, one.event.change
        if event.claim is not None and task.claim != event.claim:
            raise StaleClaim(
                f"Its claim is stale: the task is at {task.state}, "
                f"{f'held by {task.claimed_by}' if task.claimed_by else 'not held by anybody'}."
            )
        if task.state != event.source:
            raise _NotApplied(f"the task has moved on to {task.state}")
        then = one.task
        assert then is not None
        body = self.graph.body(task.id)
        if event.source in machine.AUTHOR_STATES:
            if body != one.body or task.checks != then.checks:
                raise _NotApplied(
                    "assignment-changed: the text or the checks were changed by others meanwhile"
                )
        elif body != one.body or self._subject(then) != self._subject(task):
            raise _NotApplied("the document was changed by others, so it must be looked at again")
        again = self._again(event, task)
        self._put(again, place)
        if isinstance(change, Submitted) and change.outcome == "landed":
            decision = self._decision(event)
            unblock_after(decision, task.id)
            for made in decision.events:
                self._add_follower(place, one, made)

    def _add_follower(self, place: int, one: Local, made: Event) -> None:
        follower = self._follower(place, made)
        if follower is None:
            word = f"{made.kind} {made.uid}"
            self._put(made._replace(event_id=derived(one.event.event_id, word)), None)
            return
        self.taken.add(follower)
        then = self.local[follower].event
        self._put(made._replace(event_id=then.event_id, at=then.at), follower)

    def _subject(self, task: Task) -> Task:
        """Returns as much of a task as a verdict is about, with the numbers of now."""
        names = ("depends_on", "parent", "supersedes", "follows")
        mapped = {name: self._mapped(name, getattr(task, name)) for name in names}
        return task._replace(
            id="", former_ids=(), branch=None, attention=(), artifacts=(), **mapped
        )

    def _check(self, place: int, one: Local, task: Task) -> None:
        event = one.event
        assert isinstance(event.change, CheckPassed | CheckRefuted)
        findings = event.change.findings if isinstance(event.change, CheckRefuted) else ()
        done = task.checked_tip == event.commit and task.state != "CHECK"
        if done and not findings:
            raise _NotApplied("the same check was recorded by others", quiet=True)
        request = RecordCheck(task.id, event.commit or "", event.change.results, findings)
        self._decide(place, one, request, event.kind)

    def _unblock(self, place: int, one: Local, task: Task) -> None:
        decision = self._decision(one.event)
        unblock(decision, task.id, cast("Unblocked", one.event.change).cause)
        if not decision.events:
            raise _NotApplied(f"the task is at {task.state}", quiet=True)
        self._add_all(place, one, decision, decision.events[0])

    def _require_unchanged(self, one: Local, task: Task, *names: str) -> None:
        assert one.task is not None
        for name in names:
            if self._mapped(name, getattr(one.task, name)) != getattr(task, name):
                raise _NotApplied(f"others have changed its {name} too")

    # ------------------------------------------------------------------------------------ edits

    def _edit(self, place: int, one: Local, task: Task) -> None:
        event, change = one.event, one.event.change
        assert isinstance(change, Edited | ExternallyChanged)
        assert one.task is not None
        fields, missed = self._fields(one.task, task, change)
        body, is_kept = self._merged_body(one, task)
        if not task.is_open:
            self._keep_edit(place, one, task, "the task was closed meanwhile")
            return
        was_claimed = one.task.claim is not None
        applied = bool(fields or body is not None or _is_seen(change))
        if applied:
            self._put_edit(place, one, task, fields, body, force=was_claimed)
        elif not missed and not is_kept:
            raise _NotApplied("it is so already", quiet=True)
        task = self.graph.get(task.id) or task
        if is_kept:
            reason = "others have changed the same place of the text"
            self._keep_edit(None if applied else place, one, task, reason)
        elif missed:
            reason = f"others have changed its {', '.join(missed)} too"
            if not applied:
                raise _NotApplied(reason)
            self.rejected.append((event, reason))
            said = Rejected(event.kind, reason)
            text = _parts(one.message)[0]
            self._put(self._about(task, said, event, "fields", role="tool", text=text), None)

    def _fields(
        self, then: Task, now: Task, change: Edited | ExternallyChanged
    ) -> tuple[dict[str, Any], list[str]]:
        """Returns the fields to set, and those that others have changed to something else."""
        wanted = dict(change.set)
        wanted |= {name: _default(name) for name in change.unset}
        fields: dict[str, Any] = {}
        missed = []
        for name, value in wanted.items():
            was, present = _field(then, name), _field(now, name)
            if name == "depends_on":
                old, new = self._mapped(name, was), self._mapped(name, value)
                kept = tuple(one for one in present if one in new or one not in old)
                needs = tuple(dict.fromkeys((*kept, *(one for one in new if one not in old))))
                if needs != present:
                    fields[name] = needs
            elif present == value:
                continue
            elif present == was:
                fields[name] = value
            else:
                missed.append(name)
        return fields, missed

    def _merged_body(self, one: Local, task: Task) -> tuple[bytes | None, bool]:
        """Returns the new text, None where there is none, and whether ours has to be kept."""
        event = one.event
        assert isinstance(event.change, Edited | ExternallyChanged)
        if not event.change.body or event.body is None:
            return None, False
        present = self.graph.body(task.id)
        both = merged(one.body, event.body, present)
        if both is None:
            return None, True
        return (None if both == present else both), False

    def _put_edit(
        self,
        place: int,
        one: Local,
        task: Task,
        fields: dict[str, Any],
        body: bytes | None,
        *,
        force: bool,
    ) -> None:
        event, change = one.event, one.event.change
        unset = tuple(sorted(n for n, v in fields.items() if v == _default(n)))
        set_ = tuple(sorted((n, v) for n, v in fields.items() if n not in unset))
        if isinstance(change, ExternallyChanged):
            made = change._replace(set=set_, unset=unset, body=body is not None)
            self._put(self._again(event, task, change=made, body=body), place)
            return
        if "depends_on" in fields:
            require_no_ring(self._decision(event), task.id, fields["depends_on"])
        request = Edit(task.id, set_, unset, body, force=force)
        try:
            self._decide(place, one, request, "edit")
        except (Refused, Taken) as refusal:
            if body is None:
                raise
            self._keep_edit(place, one, task, _sentence(refusal))

    def _keep_edit(self, place: int | None, one: Local, task: Task, reason: str) -> None:
        """Keeps an edit that was not applied as a note, in as many parts as it needs."""
        event = one.event
        words = f"{event.actor} edited {task.id}, but {reason}; what was written is in a note"
        text = one.message
        if event.body is not None:
            text = event.body.decode("utf-8", "replace")
            if dict(cast("Edited", event.change).set):
                text = f"{one.message}\n{text}"
        for number, part in enumerate(_parts(text), 1):
            own = place is not None and number == 1
            made = self._about(task, Noted(attention=words if number == 1 else None),
                               event, f"kept {number}", text=part)  # fmt: skip
            if not task.is_open and number > 1:
                made = made._replace(change=Noted(attention=f"part {number} of that note"))
            if own:
                made = made._replace(event_id=event.event_id)
            self._put(made, place if own else None)
        self.notes.append(f"{words[0].upper()}{words[1:]}.")


def _is_seen(change: Edited | ExternallyChanged) -> bool:
    """Tells whether an edit also says that the manager has seen the rows of the task."""
    return isinstance(change, Edited) and change.seen


def derived(event_id: str, word: str) -> str:
    """Returns the id of an event that follows from another one, the same in every clone."""
    from hashlib import sha256

    return sha256(f"{event_id} {word}".encode("utf-8", "replace")).hexdigest()[:32]


def _sentence(refusal: GittasksError) -> str:
    text = refusal.message.rstrip(".")
    return text[:1].lower() + text[1:]


def _parts(text: str) -> list[str]:
    """Returns a text in pieces that fit into one message each, at least one."""
    parts: list[str] = []
    part: list[str] = []
    size = 0
    for line in text.rstrip("\n").split("\n"):
        for start in range(0, max(len(line), 1), TEXT_LIMIT // 6):
            piece = line[start : start + TEXT_LIMIT // 6]
            # A character may take six to be spelled, and each line is indented.
            cost = len(piece.encode("utf-8", "replace")) + 5
            cost = cost if piece.isprintable() and "\\" not in piece else 6 * len(piece) + 5
            if part and size + cost > TEXT_LIMIT:
                parts.append("\n".join(part))
                part, size = [], 0
            part.append(piece)
            size += cost
    parts.append("\n".join(part))
    return parts


def _default(name: str) -> Any:
    from gittasks.domain.task import Task

    return None if name.startswith("x-") else Task._field_defaults.get(name)


def _field(task: Task, name: str) -> Any:
    return dict(task.extra).get(name) if name.startswith("x-") else getattr(task, name)


def _shown(value: Any) -> str:
    return repr(list(value) if isinstance(value, tuple) else value)[:80]

"""What becomes of events that one clone has written alone, on top of what all others agreed on.

Each is decided again, in order, by the rules that decide everything else. It keeps its id, its
author and its time; where it does not fit any more, an event with the same id says so and carries
its message, so that nothing disappears and nothing is ever there twice.

| event of this clone | on top of the others |
|---|---|
| create | applied; a taken number is replaced by a free one, and a `renumber` tells of it |
| link to a task that does not take it any more | left out of the create, and a note says so |
| claim of a task that is claimed, moved on or closed | lost, which is nothing for the manager |
| whatever was said under a lost or ended claim | not applied |
| verdict (review, landing) on a document that changed | not applied: it has to be looked at again |
| submit from a text or checks that changed | not applied: `assignment-changed` |
| check of a task whose checks changed | not applied |
| dependency | added unless it closes a ring |
| body edit | merged with theirs; where both changed one place theirs stays, and ours becomes a note |
| field edit | applied unless the field was changed by others too |
| edit of a task that was closed | becomes a note |
| setting, shared text | applied unless it was changed by others too |
| other verbs | decided again |

Rows that others have added to a task stay when the manager of this clone has cleared those that
were there: nobody has seen them yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from gittasks.domain import dependencies, machine
from gittasks.domain.decide import carry_out
from gittasks.domain.edit_merge import Before, Plan, default_of, has_seen, merge_edit
from gittasks.domain.errors import Corrupt, Cycle, GittasksError, StaleClaim, in_a_sentence
from gittasks.domain.events import (
    CHANGES,
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
    data_of,
)
from gittasks.domain.fields import DOCUMENT_LIMIT
from gittasks.domain.ids import LAST_ID, key_between
from gittasks.domain.replayed import Local, Lost, Renaming, Replayed, Step
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
from gittasks.domain.rules.claim import is_expired
from gittasks.domain.rules.decision import Decision, unblock, unblock_after
from gittasks.domain.task_graph import Graph, Overlay, evolve, free_ids
from gittasks.domain.times import seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gittasks.domain.config import Project
    from gittasks.domain.requests import Request
    from gittasks.domain.task import Task

TEXT_LIMIT = 500_000
"""The most bytes of a kept text that one message takes; a longer one comes in parts."""
_MESSAGE_LIMIT = 1_000_000
"""The most bytes of text and data in one message; its trailers have the rest of what is read."""
_REASON_LIMIT = 1_000
_MANY_ROWS = 200

_REPAIRS = ("edit", "note")
"""What may be said about a task that something invalid has arrived of; it is well from then on."""

_LINKS = ("depends_on", "parent", "supersedes", "follows")

# What carrying out an event that is not as any tool writes it can end in.
_ODD = (LookupError, TypeError, ValueError, AttributeError, AssertionError, ArithmeticError)


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
    renewed: Callable[[Task], str | None] = lambda _task: None
    """Gives the later end of a claim's lease; asked only where the lease looks expired."""
    quarantined: Callable[[str], str | None] = lambda _number: None
    """Gives why a task keeps its last good state until it is repaired, None for all others."""


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
        self.known = {one.event.event_id for one in local}
        self.local = self._told_apart(local)
        self.graph = Overlay(common.graph)
        self.settings = common.settings
        self.texts: dict[str, bytes | None] = {}
        self.steps: list[Step] = []
        self.taken: set[int] = set()
        self.followers: list[int] = []
        self.ids: dict[str, str] = {}
        self.gone: set[str] = set()
        self.spared: dict[str, str] = {}
        self.branches: set[str] = set()
        self.renamed: list[Renaming] = []
        self.lost: dict[str, Lost] = {}
        self.same: set[str] = set()
        self.rejected: list[tuple[Event, str]] = []
        self.notes: list[str] = []
        self.numbers = {one.event.task for one in local if _is_new(one.event) and one.event.task}

    def _told_apart(self, local: Iterable[Local]) -> list[Local]:
        """Returns the events, of two with one id the second with another one."""
        ids: set[str] = set()
        apart = []
        for one in local:
            event = one.event
            if event.event_id in ids:
                event = event._replace(event_id=self._derived(event.event_id, "again"))
            ids.add(event.event_id)
            apart.append(one._replace(event=event))
        return apart

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
        """Applies one event with all that follows from it, or says that it was not applied."""
        settled = self.graph
        lists: tuple[list[Any], ...] = (self.steps, self.renamed, self.rejected, self.notes)
        lengths = [len(each) for each in lists]
        self.graph = Overlay(settled)
        self.followers = []
        refusal = self._refusal(place, one)
        if refusal is None:
            for task in self.graph.tasks.values():
                settled.put(task, self.graph.bodies.get(task.id))
            self.taken.update(self.followers)
            self.graph = settled
            return
        self.graph = settled
        for each, length in zip(lists, lengths, strict=True):
            del each[length:]
        self._refuse(place, one, refusal)

    def _refusal(self, place: int, one: Local) -> _NotApplied | None:
        """Carries an event out as far as it goes; returns why it is not applied, None if it is."""
        try:
            self._carry_out(place, one)
        except _NotApplied as refusal:
            return refusal
        except GittasksError as refusal:
            return _NotApplied(in_a_sentence(refusal.message))
        except _ODD as error:
            return _NotApplied(f"it cannot be carried out: {type(error).__name__} {error}".strip())
        return None

    def _carry_out(self, place: int, one: Local) -> None:
        event = one.event
        if isinstance(event.change, Rejected):
            self._keep(event, place)
        elif not event.is_about_a_task:
            self._take_project(place, one)
        elif _is_new(event):
            self._create(place, one)
        else:
            task = self._task(event)
            if task is None:
                is_there = self.common.is_unreadable(event.task or "")
                why = "cannot be read" if is_there else "does not exist"
                raise _NotApplied(f"the task {event.task} {why}")
            self._take_step(place, one, task)
            self._put_rows_back(one, task)

    def _refuse(self, place: int, one: Local, refusal: _NotApplied) -> None:
        event, change = one.event, one.event.change
        reason = refusal.reason[:_REASON_LIMIT]
        task = self._task(event)
        is_lost = isinstance(change, Claimed) and (task is None or task.claim != event.claim)
        if is_lost and event.claim is not None:
            name = (event.task or "", event.uid or "") if task is None else (task.id, task.uid)
            branch = cast("Claimed", change).branch
            self.lost[event.claim] = Lost(*name, event.claim, event.actor, branch, reason)
        if _is_new(event) and task is None and event.task is not None:
            self.gone.add(event.task)
        self._reject(place, one, reason, quiet=refusal.quiet or is_lost)

    def _task(self, event: Event) -> Task | None:
        known = None if event.uid is None else self.graph.with_uid(event.uid)
        return None if known is None else self.graph.get(known)

    # -------------------------------------------------------------------------- writing events

    def _put(self, event: Event, place: int | None) -> None:
        """Adds one event that is legal where it stands; raises _NotApplied for another one."""
        task = None if event.task is None else self.graph.get(event.task)
        objection = machine.objection(self.graph, event) or self._objection_to_quarantine(event)
        if objection is not None:
            raise _NotApplied(objection)
        if _cost(event.text) + len(data_of(event.change)) > _MESSAGE_LIMIT:
            raise _NotApplied("its message would be too long")
        if event.is_about_a_task:
            body = b"" if task is None else self.graph.body(task.id)
            after, body_after = evolve(task, body, event)
            _require_room(after, body_after)
            self.graph.put(after, None if task is not None and body_after is body else body_after)
        self.steps.append(Step(event, place))

    def _objection_to_quarantine(self, event: Event) -> str | None:
        """Returns why a task does not go on of which something invalid has come, if so."""
        reason = None if event.task is None else self.common.quarantined(event.task)
        said = [event, *(step.event for step in self.steps)] if reason is not None else []
        if any(one.task == event.task and one.kind in _REPAIRS for one in said):
            return None
        why = reason and in_a_sentence(reason)
        return why and f"the task {event.task} keeps its last good state, because {why}"

    def _again(self, event: Event, task: Task, **changes: Any) -> Event:
        """Returns an event as it is said now about a task that may have moved or been renamed."""
        target = task.state if event.source == event.target else event.target
        fields = {"task": task.id, "source": task.state, "target": target, **changes}
        return event._replace(revision=None, document=None, **fields)

    def _about(self, task: Task, change: Any, because: Event, word: str, **fields: Any) -> Event:
        """Returns an event that follows from another one and leaves the state as it is."""
        base: dict[str, Any] = {
            "event_id": self._derived(because.event_id, word),
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

    def _derived(self, event_id: str, word: str) -> str:
        """Returns an id that follows from another one and that no event has yet."""
        found = derived(event_id, word)
        while found in self.known:
            found = derived(found, word)
        self.known.add(found)
        return found

    def _decide(self, place: int, one: Local, request: Request, kind: str) -> None:
        """Carries a request out as whoever made the event, who keeps what it was called."""
        decision = self._decision(one.event)
        carry_out(decision, request)
        made = [step for step in decision.events if step.kind == kind]
        if not made:
            raise _NotApplied("it is so already", quiet=True)
        self._add_all(place, one, decision.events, made[0])

    def _decision(self, event: Event) -> Decision:
        role = None if event.role == "none" else event.role
        facts = Facts(
            now=event.at,
            host=event.host,
            speaker=Speaker(event.actor, role, event.claim),
            rejection_limit=self.settings.rejection_limit,
            check_failure_limit=self.settings.check_failure_limit,
            history=self._history,
            renewed=self.common.renewed,
        )
        return Decision(self.graph, facts)

    def _history(self, task: str) -> Iterator[Event]:
        for step in reversed(self.steps):
            if step.event.task == task:
                yield step.event
        yield from self.common.history(task)

    def _add_all(self, place: int, one: Local, events: Iterable[Event], main: Event) -> None:
        """Adds what a decision says, with the event of this clone as what it was called."""
        event = one.event
        for made in events:
            if made is main:
                self._put(
                    made._replace(event_id=event.event_id, text=event.text, commit=event.commit),
                    place,
                )
            else:
                self._add_consequence(place, one, made)

    def _add_consequence(self, place: int, one: Local, made: Event) -> None:
        """Adds what follows from an event, in the place of what followed then, if it did."""
        follower = self._follower(place, made)
        if follower is None:
            word = f"{made.kind} {made.uid}"
            self._put(made._replace(event_id=self._derived(one.event.event_id, word)), None)
            return
        self.followers.append(follower)
        then = self.local[follower].event
        self._put(made._replace(event_id=then.event_id, at=then.at), follower)

    def _follower(self, place: int, made: Event) -> int | None:
        """Returns the place of the unblock that this clone had seen follow from an event."""
        for at in range(place + 1, len(self.local)):
            event = self.local[at].event
            if event.kind != "unblock":
                break
            if made.kind == "unblock" and event.uid == made.uid:
                return at
        return None

    # ----------------------------------------------------------------- what was not applied

    def _reject(self, place: int, one: Local, reason: str, *, quiet: bool = False) -> None:
        """Keeps the message of an event that is not applied, under the event's own id."""
        self.rejected.append((one.event, reason))
        parts = _parts(one.message + _unsaid(one))
        self._keep_parts(place, one, Rejected(one.event.kind, reason, quiet), parts)

    def _reject_rest(self, one: Local, reason: str) -> None:
        """Says that a part of an event was not applied; the other part has the event's own id."""
        self.rejected.append((one.event, reason))
        change = Rejected(one.event.kind, reason[:_REASON_LIMIT])
        self._keep_parts(None, one, change, _parts(one.message))

    def _keep_parts(
        self, place: int | None, one: Local, change: Rejected, parts: Sequence[str]
    ) -> None:
        event = one.event
        for number, text in enumerate(parts, 1):
            is_own = place is not None and number == 1
            own = event.event_id if is_own else self._derived(event.event_id, f"part {number}")
            part = change._replace(part=number, parts=len(parts))
            self._keep(self._saying(event, own, part, text), place if is_own else None)

    def _saying(self, because: Event, event_id: str, change: Rejected, text: str) -> Event:
        return Event(
            event_id=event_id,
            at=because.at,
            actor=because.actor,
            role="tool",
            host=because.host,
            change=change,
            uid=because.uid,
            text=text,
        )

    def _keep(self, event: Event, place: int | None) -> None:
        """Adds what says that something was not applied, about no task where there is none."""
        task = self._task(event)
        if task is not None:
            try:
                self._put(self._again(event, task, target=task.state), place)
            except _NotApplied:
                # Its document has no room left, or waits for being repaired.
                task = None
        if task is None:
            about_none = event._replace(task=None, uid=None, source=None, target=None)
            self._put(about_none._replace(revision=None, document=None), place)

    def _put_rows_back(self, one: Local, before: Task) -> None:
        """Keeps the rows that the manager of this clone has not seen and an event has cleared."""
        if one.task is None:
            return
        after = self._present(before)
        done = {row.event for row in (*one.task.attention, *after.attention)}
        for row in before.attention:
            # Others are not of an event: they come and go with what they tell.
            if row.event not in done and row.kind in CHANGES:
                again = Noted(attention=row.text)
                word = f"row {row.event}"
                after = self._present(before)
                self._put(self._about(after, again, one.event, word, role="tool"), None)

    def _present(self, task: Task) -> Task:
        present = self.graph.get(task.id)
        assert present is not None
        return present

    # ---------------------------------------------------------------------- events of the project

    def _take_project(self, place: int, one: Local) -> None:
        change = one.event.change
        if isinstance(change, Configured) and change.path is not None:
            self._take_text(place, one, change.path)
        elif isinstance(change, Configured):
            self._take_settings(place, one, change.set, change.unset)
        else:
            assert isinstance(change, Initialized)
            self._take_settings(place, one, change.project, (), begins=True)

    def _take_text(self, place: int, one: Local, path: str) -> None:
        event = one.event
        now = self.texts[path] if path in self.texts else self.common.text(path)
        if event.body == now:
            raise _NotApplied("it is so already", quiet=True)
        if now != one.text:
            raise _NotApplied(f"others have changed {path} too")
        self._put(event._replace(document=None), place)
        self.texts[path] = event.body

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
        now = self.settings._asdict()
        was = {} if begins or one.settings is None else one.settings._asdict()
        wanted = {name: value for name, value in wanted.items() if now.get(name) != value}
        if not wanted:
            raise _NotApplied("it is so already", quiet=True)
        lost = [name for name in wanted if name not in was or now[name] != was[name]]
        words = ", ".join(f"{name} stays {_shown(now.get(name))}" for name in lost)
        reason = f"others have set {', '.join(lost)} too: {words}"
        if len(lost) == len(wanted):
            raise _NotApplied(reason)
        kept: dict[str, Any] = {n: value for n, value in wanted.items() if n not in lost}
        settings = _checked(self.settings._replace(**kept))
        set_ = tuple((n, v) for n, v in kept.items() if n not in defaults or v != defaults[n])
        dropped = tuple(n for n in kept if n not in dict(set_))
        self._put(one.event._replace(change=Configured(set_, dropped), document=None), place)
        self.settings = settings
        if lost:
            self._reject_rest(one, reason)

    # ------------------------------------------------------------------------------- new tasks

    def _create(self, place: int, one: Local) -> None:
        event = one.event
        assert event.task is not None
        assert event.uid is not None
        present = self.graph.with_uid(event.uid)
        if present is not None:
            # The same idempotency key in two clones is one task.
            self.same.add(event.uid)
            self._reject(place, one, f"the task is {present} already", quiet=True)
            self._renumber(event, present)
            return
        number = self._free() if self._is_taken(event.task) else event.task
        change, said = self._linked(event, number)
        if number != event.task and isinstance(change, Created):
            change = change._replace(former_ids=(*change.former_ids, event.task))
        self._put(event._replace(task=number, change=change, document=None), place)
        task = self.graph.get(number)
        assert task is not None
        if number != event.task:
            self._tell_number(event, task)
        if said:
            kept = Noted(attention="; ".join(said)[:_REASON_LIMIT])
            self._put(self._about(task, kept, event, "link"), None)
        self._renumber(event, number)

    def _renumber(self, event: Event, number: str) -> None:
        assert event.task is not None
        assert event.uid is not None
        if number != event.task:
            self.ids[event.task] = number
            self.renamed.append(Renaming(event.uid, event.task, number))

    def _is_taken(self, number: str) -> bool:
        return (
            self.graph.get(number) is not None
            or self.common.is_unreadable(number)
            or self.common.quarantined(number) is not None
        )

    def _free(self) -> str:
        """Returns the next number that no task of this clone has either."""
        try:
            return next(
                number
                for number in free_ids(self.graph)
                if number not in self.numbers and not self._is_taken(number)
            )
        except Corrupt:
            raise _NotApplied(f"its number is taken, and all up to {LAST_ID} are used up") from None

    def _linked(self, event: Event, number: str) -> tuple[Created | ExternallyChanged, list[str]]:
        """Returns the create with the present numbers, without links that nobody may make now."""
        change = event.change
        assert isinstance(change, Created | ExternallyChanged)
        values = change._asdict() if isinstance(change, Created) else dict(change.set)
        links = {name: self._mapped(name, values[name]) for name in _LINKS if values.get(name)}
        said = self._unlinked(links)
        old = self.graph.get(links["supersedes"]) if "supersedes" in links else None
        if old is not None:
            why = self._objection_to_supersede(old, links.get("depends_on", ()), number)
            if why is not None:
                said.append(f"it was to supersede {old.id}, but {why}")
                self.spared[old.uid] = why
                self._follow_instead(links, "supersedes", old.id)
        if isinstance(change, Created):
            blank: dict[str, Any] = {name: () if name == "depends_on" else None for name in _LINKS}
            return change._replace(**{**blank, **links}), said
        pairs = [(name, value) for name, value in change.set if name not in _LINKS]
        return change._replace(set=(*pairs, *links.items())), said

    def _unlinked(self, links: dict[str, Any]) -> list[str]:
        """Takes links away to what cannot be read, and to a closed parent; returns what it took."""
        said = []
        for name in [name for name in _LINKS if name in links]:
            named = links[name] if name == "depends_on" else (links[name],)
            missing = [other for other in named if self.graph.get(other) is None]
            if missing:
                said.append(f"its {name} named {', '.join(missing)}, which cannot be read now")
            left = tuple(other for other in named if other not in missing)
            if left:
                links[name] = left if name == "depends_on" else left[0]
            else:
                del links[name]
        parent = self.graph.get(links["parent"]) if "parent" in links else None
        if parent is not None and not parent.is_open:
            said.append(f"its parent {parent.id} was closed meanwhile")
            self._follow_instead(links, "parent", parent.id)
        return said

    def _follow_instead(self, links: dict[str, Any], name: str, other: str) -> None:
        del links[name]
        links.setdefault("follows", other)

    def _objection_to_supersede(self, old: Task, needs: Iterable[str], number: str) -> str | None:
        if old.is_landed:
            return "that has landed meanwhile"
        # The new task stands where the old one stood: a way to the old one is a way to itself.
        path = dependencies.ring(self.graph, old.id, needs)
        return None if path is None else in_a_sentence(Cycle((number, *path[1:-1], number)).message)

    def _mapped(self, name: str, value: Any) -> Any:
        """Returns a field of a task with the numbers that the tasks of this clone have now."""
        if name not in _LINKS or value is None:
            return value
        named = value if name == "depends_on" else (value,)
        gone = next((other for other in named if other in self.gone), None)
        if gone is not None:
            raise _NotApplied(f"it names {gone}, which could not be created")
        now = tuple(dict.fromkeys(self.ids.get(other, other) for other in named))
        return now if name == "depends_on" else now[0]

    def _tell_number(self, event: Event, task: Task) -> None:
        assert event.task is not None
        word = f"renumber {task.id}"
        if event.task in task.former_ids:
            change: Renumbered | Noted = Renumbered(event.task, task.id)
            told = self._about(task, change, event, word, role="tool")
        else:
            text = f"It was {event.task} in the clone where it was written down."
            told = self._about(task, Noted(), event, word, role="tool", text=text)
        self._put(told, None)

    # -------------------------------------------------------------------------- steps of a task

    def _take_step(self, place: int, one: Local, task: Task) -> None:
        event = one.event
        self._require_counts(event)
        match event.change:
            case Claimed():
                self._claim(place, one, task)
            case Submitted() if event.source in ("NEW", "BLOCKED"):
                self._dispatch(place, one, task)
            case Submitted() | FeedbackGiven():
                self._verdict(place, one, task)
            case CheckPassed() | CheckRefuted():
                self._check(place, one, task)
            case Unblocked(cause=cause):
                decision = self._decision(event)
                unblock(decision, task.id, cause and self.ids.get(cause, cause))
                if not decision.events:
                    raise _NotApplied(f"the task is at {task.state} now", quiet=True)
                self._add_all(place, one, decision.events, decision.events[0])
            case Released(why=why):
                if task.claim != event.claim:
                    raise _NotApplied("the claim has ended already", quiet=True)
                if why == "expired" and not is_expired(task, event.at, self.common.renewed(task)):
                    raise _NotApplied("the claim was renewed meanwhile", quiet=True)
                self._put(self._again(event, task), place)
            case Edited() | ExternallyChanged():
                self._edit(place, one, task)
            case _:
                self._take_other(place, one, task)

    def _require_counts(self, event: Event) -> None:
        """Refuses what was said under a claim that was lost."""
        if event.claim is None or event.claim not in self.lost or event.kind == "claim":
            return
        if event.role == "manager" and event.kind in ("hold", "abort"):
            # These only name the claim that they end.
            return
        reason = f"its claim was lost: {self.lost[event.claim].reason}"
        raise _NotApplied(reason, quiet=event.kind == "release")

    def _take_other(self, place: int, one: Local, task: Task) -> None:
        event = one.event
        match event.change:
            case Held(reason=reason, cost=cost):
                self._decide(place, one, Hold(task.id, reason, cost), "hold")
            case Resumed(remark=remark):
                self._decide(place, one, Resume(task.id, remark), "resume")
            case Aborted():
                self._abort(place, one, task)
            case Noted():
                self._note(place, one, task)
            case Reparented(parent=parent):
                above = self._mapped("parent", parent)
                if above != task.parent:
                    self._require_unchanged(one, task, "parent")
                self._decide(place, one, Reparent(task.id, above), "reparent")
            case Reordered(position=position):
                if position == task.position:
                    raise _NotApplied("it is so already", quiet=True)
                self._require_unchanged(one, task, "parent", "position")
                free = Reordered(self._position(task, position))
                self._put(self._again(event, task, change=free), place)
            case Renumbered(old=old):
                if old not in task.former_ids:
                    raise _NotApplied(f"the task is {task.id} already", quiet=True)
                self._put(self._again(event, task, change=Renumbered(old, task.id)), place)
            case _:
                self._put(self._again(event, task), place)

    def _note(self, place: int, one: Local, task: Task) -> None:
        event, change = one.event, cast("Noted", one.event.change)
        said = event.text or change.artifacts
        if change.seen and not has_seen(_then(one), task):
            change = change._replace(seen=False)
            if not said:
                raise _NotApplied("the rows that were seen are gone already", quiet=True)
        if said and change.attention is None and not task.is_open:
            change = change._replace(attention=f"a note by {event.actor} came after the close")
        self._put(self._again(event, task, change=change), place)

    def _require_unchanged(self, one: Local, task: Task, *names: str) -> None:
        then = _then(one)
        for name in names:
            if self._mapped(name, getattr(then, name)) != getattr(task, name):
                raise _NotApplied(f"others have changed its {name} too")

    def _position(self, task: Task, position: str) -> str:
        """Returns a place among the siblings, right after whoever of the others has taken it."""
        rows = [self.graph.get(other) for other in self.graph.children(task.parent)]
        keys = {row.sort_key for row in rows if row is not None and row.id != task.id}
        if position not in keys:
            return position
        return key_between(position, min((key for key in keys if key > position), default=""))

    def _abort(self, place: int, one: Local, task: Task) -> None:
        event, change = one.event, cast("Aborted", one.event.change)
        if not task.is_open:
            is_aborted = task.outcome == "aborted"
            raise _NotApplied(f"the task {'was aborted' if is_aborted else 'has landed'} already",
                              quiet=is_aborted)  # fmt: skip
        heir = (change.reason or "").removeprefix(_SUPERSEDED)
        is_replaced = change.reason == _SUPERSEDED + heir
        if is_replaced and task.uid in self.spared:
            raise _NotApplied(f"it is not superseded: {self.spared[task.uid]}")
        text = event.text
        if is_replaced and heir in self.ids:
            text = text.replace(_SUPERSEDED + heir, _SUPERSEDED + self.ids[heir])
            change = change._replace(reason=_SUPERSEDED + self.ids[heir])
        new = self.graph.get(self.ids.get(heir, heir)) if is_replaced else None
        is_with_others = (
            (new is not None and new.supersedes == task.id)
            or event.source not in machine.ABORTABLE
            or self._is_in_a_family(place)
        )
        if task.state not in machine.ABORTABLE and not is_with_others:
            raise _NotApplied(f"the task is at {task.state} now")
        self._put(self._again(event, task, change=change, claim=task.claim, text=text), place)

    def _is_in_a_family(self, place: int) -> bool:
        """Tells whether an abort was one of several by one command."""
        event = self.local[place].event
        beside = [
            self.local[at].event for at in (place - 1, place + 1) if 0 <= at < len(self.local)
        ]
        return any(
            (event.kind, event.change, event.at, event.actor) == (e.kind, e.change, e.at, e.actor)
            for e in beside
        )

    def _claim(self, place: int, one: Local, task: Task) -> None:
        event, change = one.event, cast("Claimed", one.event.change)
        if event.claim is None or task.claim == event.claim:
            raise _NotApplied("it is so already", quiet=True)
        if not task.is_open:
            raise _NotApplied("the task is closed")
        if task.state != event.source:
            raise _NotApplied(_elsewhere(task, event))
        branch = self._branch(task, change)
        request = Claim(
            task.id, event.claim, seconds_of(change.lease_expires), branch, change.base,
            change.dispatched, change.assignment,
        )  # fmt: skip
        self._decide(place, one, request, "claim")
        if branch != change.branch and change.branch not in self.branches:
            self.branches.add(change.branch)
            self.renamed.append(Renaming(task.uid, task.id, task.id, (change.branch, branch)))

    def _branch(self, task: Task, change: Claimed) -> str:
        """Returns the name of the branch, another one where a task of the others has taken it."""
        if task.branch is not None:
            return task.branch
        owner = self.common.branches(change.branch)
        if owner is None or owner == task.uid:
            return change.branch
        return f"{self.common.branch_prefix}{task.id}-{task.uid[:4]}"

    def _dispatch(self, place: int, one: Local, task: Task) -> None:
        event, change = one.event, cast("Submitted", one.event.change)
        if task.state not in ("NEW", "BLOCKED"):
            is_so = task.uid in self.same or task.state == event.target
            raise _NotApplied(_elsewhere(task, event), quiet=is_so)
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
            holder = f"held by {task.claimed_by}" if task.claimed_by else "not held by anybody"
            raise StaleClaim(f"Its claim is stale: the task is at {task.state}, {holder}.")
        if task.state != event.source:
            raise _NotApplied(_elsewhere(task, event))
        then = _then(one)
        is_same_text = self.graph.body(task.id) == one.body
        if event.source in machine.AUTHOR_STATES:
            if not is_same_text or task.checks != then.checks:
                raise _NotApplied(
                    "assignment-changed: the text or the checks were changed by others meanwhile"
                )
        elif not is_same_text or self._subject(then) != self._subject(task):
            raise _NotApplied("the document was changed by others, so it must be looked at again")
        self._put(self._again(event, task), place)
        if isinstance(change, Submitted) and change.outcome == "landed":
            decision = self._decision(event)
            unblock_after(decision, task.id)
            for made in decision.events:
                self._add_consequence(place, one, made)

    def _subject(self, task: Task) -> Task:
        """Returns as much of a task as a verdict is about, with the numbers of now."""
        links = {name: self._mapped(name, getattr(task, name)) for name in _LINKS}
        return task._replace(
            id="", former_ids=(), branch=None, position=None, attention=(), artifacts=(), costs=(),
            created_at="", created_by="", **links,
        )  # fmt: skip

    def _check(self, place: int, one: Local, task: Task) -> None:
        event = one.event
        assert isinstance(event.change, CheckPassed | CheckRefuted)
        if task.state != "CHECK":
            done = ((step.kind, step.commit) for step in self._history(task.id))
            raise _NotApplied(_elsewhere(task, event), quiet=(event.kind, event.commit) in done)
        if task.checks != _then(one).checks:
            raise _NotApplied("the checks were changed by others meanwhile")
        findings = event.change.findings if isinstance(event.change, CheckRefuted) else ()
        if (event.kind == "fail") is not bool(findings):
            raise _NotApplied("it has no findings")
        request = RecordCheck(task.id, event.commit or "", event.change.results, findings)
        self._decide(place, one, request, event.kind)

    # ------------------------------------------------------------------------------------ edits

    def _edit(self, place: int, one: Local, task: Task) -> None:
        change = one.event.change
        assert isinstance(change, Edited | ExternallyChanged)
        before = Before(_then(one), one.body)
        plan = merge_edit(self.graph, one.event, change, before, task, self._mapped)
        if plan.is_applied:
            self._put_edit(place, one, task, plan)
        if plan.kept:
            self._keep_edit(None if plan.is_applied else place, one, plan.reason)
        elif plan.is_applied and plan.reason:
            self._reject_rest(one, plan.reason)
        elif not plan.is_applied:
            raise _NotApplied(plan.reason or "it is so already", quiet=not plan.reason)

    def _put_edit(self, place: int, one: Local, task: Task, plan: Plan) -> None:
        event, change = one.event, cast("Edited | ExternallyChanged", one.event.change)
        names = sorted(plan.fields)
        unset = tuple(n for n in names if n in change.unset and plan.fields[n] == default_of(n))
        set_ = tuple((n, plan.fields[n]) for n in names if n not in unset)
        if isinstance(change, ExternallyChanged):
            made = change._replace(set=set_, unset=unset, body=plan.body is not None)
            self._put(self._again(event, task, change=made, body=plan.body), place)
            return
        decision = self._decision(event)
        carry_out(decision, Edit(task.id, set_, unset, plan.body, force=True))
        main, *unblocked = decision.events
        # Rows that came meanwhile were seen by nobody.
        main = main._replace(change=cast("Edited", main.change)._replace(seen=plan.seen))
        self._add_all(place, one, (main, *unblocked), main)

    def _keep_edit(self, place: int | None, one: Local, reason: str) -> None:
        """Keeps an edit that was not applied as a note, in as many parts as it needs."""
        event, change = one.event, cast("Edited | ExternallyChanged", one.event.change)
        text = _readable(event.body or b"")
        if change.set or change.unset or event.body is None:
            text = f"{one.message}\n{text}" if text else one.message
        words = ""
        for number, part in enumerate(_parts(text), 1):
            task = self._task(event)
            assert task is not None
            if number == 1:
                words = (
                    f"{event.actor} edited {task.id}, but {reason}; what was written is in a note"
                )
                row: str | None = words[:_REASON_LIMIT]
            else:
                row = None if task.is_open else f"part {number} of that note"
            made = self._about(task, Noted(attention=row), event, f"kept {number}", text=part)
            own = place is not None and number == 1
            made = made._replace(event_id=event.event_id) if own else made
            self._put(made, place if own else None)
        self.notes.append(f"{words[0].upper()}{words[1:]}.")


_SUPERSEDED = "superseded by "
"""How the reason begins that a create gives for the abort of what it supersedes."""


def derived(event_id: str, word: str) -> str:
    """Returns the id of an event that follows from another one, the same in every clone."""
    from hashlib import sha256

    return sha256(f"{event_id} {word}".encode("utf-8", "replace")).hexdigest()[:32]


def _is_new(event: Event) -> bool:
    change = event.change
    is_adopted = isinstance(change, ExternallyChanged) and change.created
    return isinstance(change, Created) or is_adopted


def _then(one: Local) -> Task:
    """Returns the task that an event acted on in this clone."""
    if one.task is None:
        raise _NotApplied("it is not known what it acted on")
    return one.task


def _elsewhere(task: Task, event: Event) -> str:
    return f"the task is at {task.state} now, not at {event.source}"


def _require_room(task: Task, body: bytes) -> None:
    """Refuses what makes a document larger than any reader takes."""
    if len(body) < DOCUMENT_LIMIT // 2 and len(task.attention) < _MANY_ROWS:
        return
    from gittasks.domain.frontmatter import render

    if len(render(task, body)) > DOCUMENT_LIMIT:
        raise _NotApplied(f"its document would have more than {DOCUMENT_LIMIT} bytes")


def _checked(settings: Project) -> Project:
    """Returns settings that every reader understands; raises for others."""
    from gittasks.domain.config import parse_project, render_project

    return parse_project(render_project(settings))


def _readable(body: bytes) -> str:
    """Returns bytes as a text that has all of them, whatever they are."""
    return body.decode("utf-8", "backslashreplace")


def _unsaid(one: Local) -> str:
    """Returns the text that an event brought beside its message."""
    body = one.event.body
    if not body:
        return ""
    new = body[len(one.body) :] if body.startswith(one.body) else body
    return "\n" + _readable(new) if new else ""


def _parts(text: str) -> list[str]:
    """Returns a text in pieces that fit into one message each, at least one."""
    parts: list[str] = []
    part: list[str] = []
    size = 0
    for line in text.splitlines(keepends=True):
        is_long = _cost(line) > TEXT_LIMIT
        step = TEXT_LIMIT // 8 if is_long else len(line)
        for piece in (line[at : at + step] for at in range(0, len(line), step)):
            cost = _cost(piece)
            if part and size + cost > TEXT_LIMIT:
                parts.append("".join(part))
                part, size = [], 0
            part.append(piece)
            size += cost
    return [*parts, "".join(part)]


def _cost(text: str) -> int:
    """Returns how many bytes of a message a text takes at most: lines are indented."""
    lines = 5 * (text.count("\n") + 1)
    if not text.replace("\n", "").isprintable():
        # A character may take six to be spelled.
        return 6 * len(text) + lines
    return len(text.encode()) + text.count("\\") + lines


def _shown(value: Any) -> str:
    return repr(list(value) if isinstance(value, tuple) else value)[:80]

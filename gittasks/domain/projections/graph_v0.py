"""`task_graph_projection_v0`: why one task moves or stands still, as a graph that is only read.

It is computed from a `World` and nothing else, so the same commit of the ledger and the same
options give the same object. Events decide what is drawn, words never do. Whole ids make the ids of
nodes and edges; no node goes for what its title says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.domain import dependencies, machine
from gittasks.domain.projections import queue as _queue
from gittasks.domain.projections.artifacts import Artifact
from gittasks.domain.projections.assignments import UNFINISHED, Assignment
from gittasks.domain.redact import redact
from gittasks.domain.times import timestamp
from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from gittasks.domain.projections.artifacts import CheckRun, Review
    from gittasks.domain.projections.assignments import Stint
    from gittasks.domain.projections.graph import GraphState
    from gittasks.domain.projections.stages import Visit
    from gittasks.domain.projections.table import World
    from gittasks.domain.task import State, Task

SCHEMA = "task_graph_projection_v0"
KINDS = (
    "deliverable", "gate", "gate_summary", "lease", "validation", "repair", "handoff", "evidence",
)  # fmt: skip
STATES = ("open", "ready", "blocked", "done", "waiting", "unknown")
RELATIONS = (
    "depends_on", "blocks", "validates", "repairs", "audits", "continues", "hands_off_to",
    "supersedes",
)  # fmt: skip
REF_KEYS = ("todo_ids", "gate_ids", "lease_ids", "goal_ids", "run_ids", "review_packet_ids")

GATE_LIMIT = 2
NODE_LIMIT = 4
"""How many predecessors, dependents, children and relatives of the task are drawn, of each."""
TITLE_LIMIT = 160
NAME_LIMIT = 80
REFS_LIMIT = 4

_GROUPS = ("predecessor", "dependent", "child", "lineage")
_GATES: tuple[State, ...] = ("NEW", "MANAGER_REVIEW", *machine.HELD)
"""The states in which a task waits for nobody but the manager."""
_DECISIONS = {
    machine.INBOX_ABORTED_DEPENDENCY: "Needs what was aborted",
    machine.INBOX_ATTENTION: "To look at",
    machine.INBOX_PROPOSAL: "Proposed",
    1: "Final review",
    2: "Held work",
    3: "Held plan",
    4: "Held design",
    10: "To dispatch",
}
"""What the manager decides, by the rank in the inbox."""
_SECTIONS = {"DESIGN_REVIEW": "design", "PLAN_REVIEW": "plan"}
_SHORT = 12


class Source(NamedTuple):
    """Where a world comes from: the ledger's ref, its commit and that one's committer time."""

    ref: str
    commit: str
    at: int

    @property
    def name(self) -> str:
        """Returns the name of the ledger."""
        return self.ref.removeprefix("refs/heads/")


class Options(NamedTuple):
    """What is drawn beside the usual: more gates, everything, what is done with."""

    gate_limit: int = GATE_LIMIT
    everything: bool = False
    history: bool = False


def build(
    world: World,
    task: str | None,
    source: Source,
    options: Options = Options(),  # noqa: B008  # a NamedTuple is immutable
    *,
    unreadable: Collection[str] = (),
) -> dict[str, Any] | None:
    """Returns the graph around a task; of None, around the one that matters most, if there is one.

    With `everything` and no task it is the whole project. `unreadable` are the ids of tasks whose
    documents do not verify at this commit.
    """
    if task is None and not options.everything:
        task = selected(world)
    if not len(world.graph.tasks) or (task is not None and world.graph.get(task) is None):
        return None
    if task is None and not options.everything:
        return None
    return _Drawing(world, task, source, options, unreadable).whole()


def packet_id(task: str, commit: str) -> str:
    """Returns the name of a task's review packet at a commit of the ledger."""
    return f"packet:{task}:{commit[:_SHORT]}"


def selected(world: World) -> str | None:
    """Returns the task that matters most: what heads the inbox, else the oldest claim, else queue."""
    first = next(iter(gates(world)), None)
    if first is not None:
        return first
    claims = sorted((one.since, one.task) for one in world.working.claims.values())
    if claims:
        return claims[0][1]
    ready = map(world.graph.get, world.queue.ranks)
    rows = _queue.queue(world.graph, [task for task in ready if task is not None])
    return rows[0].id if rows else None


def gates(world: World) -> list[str]:
    """Returns the tasks that wait for the manager as far as events tell, in the inbox's order."""
    rows = []
    for task_id, entry in world.inbox.entries.items():
        task = world.graph.get(task_id)
        assert task is not None
        blocking = world.graph.blocking(task_id)
        rows.append((entry.rank, -blocking, task.entered_at, task_id))
    return [row[-1] for row in sorted(rows)]


def goal_of(world: World, task: str | None, source: Source) -> str:
    """Returns the id of the topmost task above one, the ledger's name where nothing is above."""
    above = () if task is None else world.graph.ancestors(task)
    return above[-1] if above else source.name


class Repair(NamedTuple):
    """Work that came back from a stage, or was held there, until that stage is passed.

    `oid` is the ledger commit that began it, `runs` are the verdicts that sent it back.
    """

    stage: State
    oid: str
    runs: tuple[str, ...] = ()
    is_done: bool = False


def repairs(visits: Sequence[Visit]) -> list[Repair]:
    """Returns the repairs of a task in the order in which they began."""
    found: list[Repair] = []
    still: dict[str, int] = {}
    for before, visit in zip(visits, visits[1:], strict=False):
        stage = before.state
        if visit.event in ("feedback", "fail", "hold"):
            run = {"feedback": "review", "fail": "check"}.get(visit.event)
            runs = () if run is None else (f"{run}:{visit.oid[:_SHORT]}",)
            if stage in still:
                begun = found[still[stage]]
                found[still[stage]] = begun._replace(runs=begun.runs + runs)
            else:
                still[stage] = len(found)
                found.append(Repair(stage, visit.oid, runs))
        passed = [stage] if visit.event in ("submit", "pass") else []
        for one in list(still) if visit.state == "CLOSED" else passed:
            if one in still:
                at = still.pop(one)
                found[at] = found[at]._replace(is_done=True)
    return found


def deliverable_state(task: Task) -> str:
    """Returns the state in which a task is drawn."""
    match task.state:
        case "CLOSED":
            return "done"
        case "BLOCKED":
            return "blocked"
        case "NEW" | "CHECK":
            return "open"
        case state if machine.STAGE[state].claimable:
            return "open" if task.claim is not None else "ready"
        case _:
            return "waiting"


class _Drawing:
    """One graph while it is drawn."""

    def __init__(
        self,
        world: World,
        task: str | None,
        source: Source,
        options: Options,
        unreadable: Collection[str],
    ) -> None:
        self._world = world
        self._graph: GraphState = world.graph
        self._task = task
        self._source = source
        self._options = options
        self._unreadable = unreadable
        self._goal = goal_of(world, task, source)
        self._nodes: dict[str, dict[str, Any]] = {}
        self._edges: dict[str, dict[str, Any]] = {}
        self._redacted = 0

    def whole(self) -> dict[str, Any]:
        """Returns the whole object."""
        groups, wanted = self._scope()
        gated = gates(self._world)
        limit = len(gated) if self._options.everything else self._options.gate_limit
        # Whose gate is nearest comes first; the others stay in the order of the inbox.
        expanded = sorted(gated, key=lambda task: (task != self._task, task not in wanted))[:limit]
        wanted.update(dict.fromkeys(expanded))
        for task in wanted:
            self._draw_deliverable(task)
        for task in wanted:
            self._draw_lease(task)
            self._draw_handoff(task)
            self._draw_validations(task)
            self._draw_repairs(task)
            self._draw_evidence(task)
        for task in sorted(expanded, key=gated.index):
            self._draw_gate(task)
        if self._options.history:
            for task in wanted:
                self._draw_decided(task)
        left = len(gated) - len(expanded)
        if left:
            self._draw_summary(left)
        for task in wanted:
            self._relate(task)
        return {
            "schema_version": SCHEMA,
            "mode": "read_only",
            "goal_id": self._goal,
            "generated_at": timestamp(self._source.at),
            "derived_from": {
                "source_of_truth": [
                    "event_ledger", "active_goal_state", "todos", "gates", "leases", "run_history",
                ],
                "status_item_goal_id": self._goal,
                "status_item_task_id": self._task,
                "active_state_updated_at": timestamp(self._world.at),
                "run_history_window": "compact_latest_runs",
                "ledger_ref": self._source.ref,
                "ledger_commit": self._source.commit,
                "ledger_event_count": self._world.commits,
                "as_of": timestamp(self._source.at),
            },
            "truth_contract": {
                "event_ledger_is_source_of_truth": True,
                "projection_is_writable": False,
                "write_api": False,
                "recompute_rule": "Recompute from status, active state, gates, leases, and run"
                " history after each lifecycle event.",
            },
            "limits": self._limits(groups, wanted, limit, len(gated), left),
            "nodes": list(self._nodes.values()),
            "edges": list(self._edges.values()),
        }  # fmt: skip

    def _limits(
        self,
        groups: dict[str, list[str]],
        shown: Collection[str],
        gate_limit: int,
        gate_count: int,
        gates_left: int,
    ) -> dict[str, Any]:
        found: dict[str, Any] = {
            "user_gate_node_limit": gate_limit,
            "user_gate_open_count": gate_count,
            "user_gate_truncated_count": gates_left,
        }
        for name in _GROUPS:
            members = groups[name]
            limit = len(members) if self._options.everything else NODE_LIMIT
            found[f"{name}_node_limit"] = limit
            found[f"{name}_count"] = len(members)
            # One that is drawn for another reason is not left out.
            found[f"{name}_truncated_count"] = sum(task not in shown for task in members)
        found["redacted_title_count"] = self._redacted
        found["unlimited"] = self._options.everything
        return found

    # Which tasks.

    def _scope(self) -> tuple[dict[str, list[str]], dict[str, None]]:
        """Returns the tasks around the chosen one by group, and those that are drawn, in order."""
        if self._task is None:
            return {name: [] for name in _GROUPS}, dict.fromkeys(sorted(self._graph.tasks))
        task = self._need(self._task)
        # One that stands in several groups counts in each: every number is true by itself.
        groups = {
            "predecessor": self._predecessors(task),
            "dependent": self._dependents(task),
            "child": self._open_first(self._graph.children(task.id)),
            "lineage": self._open_first(self._relatives(task)),
        }
        wanted = dict.fromkeys((task.id,))
        for members in groups.values():
            wanted.update(dict.fromkeys(members[: self._limit]))
        if task.parent is not None and self._graph.get(task.parent) is not None:
            wanted.setdefault(task.parent)
        return groups, wanted

    @property
    def _limit(self) -> int | None:
        return None if self._options.everything else NODE_LIMIT

    def _predecessors(self, task: Task) -> list[str]:
        """Returns what a task needs: first what it waits for, at any distance, then what is done.

        What is closed leads no further, but an aborted one leads to what supersedes it.
        """
        depths: dict[str, int] = {}
        still: set[str] = set()
        level, depth = list(task.depends_on), 1
        while level:
            following: list[str] = []
            for needed in level:
                found = self._graph.get(needed)
                if needed in depths or needed == task.id or found is None:
                    continue
                depths[needed] = depth
                if dependencies.is_satisfied(self._graph, needed) and not found.is_open:
                    continue
                still.add(needed)
                heirs = self._graph.superseders(needed)
                following += found.depends_on if found.is_open else heirs
            level, depth = following, depth + 1
        return sorted(depths, key=lambda one: (one not in still, depths[one], one))

    def _dependents(self, task: Task) -> list[str]:
        waiting = dependencies.waiters(self._graph, task.id)
        return self._open_first({*self._graph.dependents(task.id), *waiting} - {task.id})

    def _relatives(self, task: Task) -> set[str]:
        """Returns where a task comes from and what came of it: supersession, follow-ups."""
        named = (task.supersedes, task.follows, *self._graph.superseders(task.id))
        return {one for one in named if one is not None and self._graph.get(one) is not None}

    def _open_first(self, ids: Iterable[str]) -> list[str]:
        return sorted(ids, key=lambda one: (not self._need(one).is_open, one))

    def _need(self, task_id: str) -> Task:
        task = self._graph.get(task_id)
        assert task is not None
        return task

    # Nodes.

    def _node(
        self,
        kind: str,
        durable: str,
        title: str,
        state: str,
        refs: dict[str, list[str]],
        **more: Any,
    ) -> str:
        node_id = f"{kind}:{durable}"
        shown, was_redacted = _public(title, TITLE_LIMIT)
        self._redacted += was_redacted
        node = {"node_id": node_id, "kind": kind, "title": shown, "state": state, "refs": refs}
        names = {
            name: _public(value, NAME_LIMIT)[0] if name.endswith("_agent") else value
            for name, value in more.items()
            if value is not None
        }
        self._nodes[node_id] = {**node, **names}
        return node_id

    def _edge(self, relation: str, start: str, end: str, reason: str) -> None:
        edge_id = f"{relation}:{start}>{end}"
        self._edges[edge_id] = {
            "edge_id": edge_id,
            "from_node_id": start,
            "to_node_id": end,
            "relation": relation,
            "reason": reason,
        }

    def _draw_deliverable(self, task_id: str) -> None:
        task = self._need(task_id)
        visits = self._visits(task_id)
        self._node(
            "deliverable",
            task_id,
            task.title,
            "unknown" if task_id in self._unreadable else deliverable_state(task),
            {"todo_ids": [task_id], "goal_ids": [goal_of(self._world, task_id, self._source)]},
            stage=task.state,
            outcome=task.outcome,
            parent=task.parent,
            owner_agent=task.claimed_by or task.assignee,
            actor_agent=visits[-1].actor or None if visits else None,
        )

    def _draw_lease(self, task_id: str) -> None:
        task = self._need(task_id)
        current = self._assignment(task_id).current
        if task.claim is None:
            return
        # A hand can have put a claim into a document; then no event tells of it.
        mark = current.oid[:_SHORT] if current is not None else task.claim[:_SHORT]
        is_fresh = (task.lease_expires or "") > timestamp(self._source.at)
        durable = f"claim:{task_id}:{mark}"
        node = self._node(
            "lease",
            durable,
            f"Claim of {task.claimed_by} on {task_id}",
            "ready" if is_fresh else "unknown",
            {"lease_ids": [durable], "todo_ids": [task_id]},
            owner_agent=task.claimed_by,
        )
        end = f"deliverable:{task_id}"
        self._edge("depends_on", end, node, f"{task_id} is worked on under this claim.")
        earlier = self._assignment(task_id).stints[-2:-1]
        if any(one.state == task.state and one.reason in UNFINISHED for one in earlier):
            self._edge("continues", node, end, f"An earlier claim on {task_id} ended unfinished.")

    def _draw_handoff(self, task_id: str) -> None:
        visits = self._visits(task_id)
        crossing = _last_crossing(visits)
        if crossing is None:
            return
        before, there = crossing
        visit = visits[there]
        taker = _taker(visits, there, self._assignment(task_id).stints)
        is_taken = taker is not None or there < len(visits) - 1
        giving, taking = (machine.STAGE[visits[one].state].role for one in crossing)
        node = self._node(
            "handoff",
            f"{task_id}:{visit.oid[:_SHORT]}",
            f"{visits[before].state} to {visit.state} of {task_id}",
            "done" if is_taken else "waiting",
            {"todo_ids": [task_id]},
            from_agent=visits[before + 1].actor or giving,
            to_agent=taker or taking,
        )
        reason = f"{task_id} went from the {giving} to the {taking}."
        self._edge("hands_off_to", f"deliverable:{task_id}", node, reason)

    def _draw_validations(self, task_id: str) -> None:
        visits = self._visits(task_id)
        since = _latest_round(visits)
        if since is None:
            return
        latest = {visit.oid for visit in visits[since:]}
        artifact = self._artifact(task_id)
        runs = [run for run in artifact.checks if run.oid in latest]
        if visits[-1].state == "CHECK":
            self._draw_running(self._need(task_id), visits[-1])
        elif runs:
            self._draw_run(task_id, runs[-1])
        for review in artifact.reviews:
            if review.oid in latest:
                self._draw_review(task_id, review)

    def _draw_running(self, task: Task, visit: Visit) -> None:
        run = f"check:{visit.oid[:_SHORT]}"
        for number, command in enumerate(dict.fromkeys(task.checks), 1):
            refs = {"run_ids": [run], "todo_ids": [task.id]}
            self._node("validation", f"{run}:{number}", f"{command}: not done yet", "open", refs)

    def _draw_run(self, task_id: str, run: CheckRun) -> None:
        name = f"check:{run.oid[:_SHORT]}"
        refs = {"run_ids": [name], "todo_ids": [task_id]}
        end = f"deliverable:{task_id}"
        last = {result.command: result for result in run.results}
        for number, result in enumerate(last.values(), 1):
            passed = result.exit == 0 and not result.timed_out
            verdict = "passed" if passed else "timed out" if result.timed_out else "failed"
            title = f"{result.command}: {verdict}"
            state = "done" if passed else "blocked"
            node = self._node("validation", f"{name}:{number}", title, state, refs)
            if passed:
                self._edge("validates", node, end, f"A check of {task_id} passed.")
            else:
                self._edge("blocks", node, end, f"A check of {task_id} failed.")
        if not run.passed and all(one.exit == 0 and not one.timed_out for one in run.results):
            # What stopped the run was no command: nothing to run on, or a merge that has conflicts.
            node = self._node("validation", name, f"Checks of {task_id}: failed", "blocked", refs)
            self._edge("blocks", node, end, f"The checks of {task_id} failed.")

    def _draw_review(self, task_id: str, review: Review) -> None:
        verdict = "accepted" if review.accepted else "sent back"
        name = f"review:{review.oid[:_SHORT]}"
        node = self._node(
            "validation",
            name,
            f"{review.state} of {task_id}: {verdict}",
            "done" if review.accepted else "blocked",
            {"run_ids": [name], "todo_ids": [task_id]},
            actor_agent=review.actor,
        )
        reason = f"{review.state} of {task_id} was {verdict}."
        self._edge("audits", node, f"deliverable:{task_id}", reason)

    def _draw_repairs(self, task_id: str) -> None:
        task = self._need(task_id)
        for repair in repairs(self._visits(task_id)):
            if repair.is_done and not self._options.history:
                continue
            state = "done" if repair.is_done else "open"
            if state == "open" and task.state in machine.HELD:
                state = "waiting"
            refs = {"todo_ids": [task_id]}
            if repair.runs:
                refs["run_ids"] = list(repair.runs[-REFS_LIMIT:])
                words = f"Rework of {task_id} after {repair.stage}"
                reason = f"{task_id} came back from {repair.stage}."
            else:
                words = f"Hold of {task_id} at {repair.stage}"
                reason = f"{task_id} was held at {repair.stage}."
            node = self._node("repair", f"{task_id}:{repair.oid[:_SHORT]}", words, state, refs)
            self._edge("repairs", node, f"deliverable:{task_id}", reason)

    def _draw_evidence(self, task_id: str) -> None:
        artifact = self._artifact(task_id)
        end = f"deliverable:{task_id}"
        accepted = {one.state: one for one in artifact.reviews if one.accepted}
        for state, word in _SECTIONS.items():
            if state in accepted:
                run = f"review:{accepted[state].oid[:_SHORT]}"
                refs = {"run_ids": [run], "todo_ids": [task_id]}
                title = f"Accepted {word} of {task_id}"
                node = self._node("evidence", run, title, "done", refs)
                self._edge("validates", node, end, f"The {word} of {task_id} was accepted.")
        if artifact.merge is not None and artifact.merge.commit is not None:
            run = f"merge:{artifact.merge.commit[:_SHORT]}"
            # Several tasks can have landed as one commit, where nothing had to change.
            durable = f"{run}:{task_id}" if f"evidence:{run}" in self._nodes else run
            refs = {"run_ids": [run], "todo_ids": [task_id]}
            node = self._node("evidence", durable, f"Landing of {task_id}", "done", refs)
            self._edge("validates", node, end, f"{task_id} has landed.")

    def _draw_gate(self, task_id: str) -> None:
        entry = self._world.inbox.entries.get(task_id)
        assert entry is not None
        task = self._need(task_id)
        title = f"{_DECISIONS.get(entry.rank, 'Decision')}: {task.title}"
        reason = f"{task_id} waits for the manager."
        mark = self._visits(task_id)[-1].oid
        self._draw_one_gate(task_id, task.state, mark, title, "waiting", reason)

    def _draw_decided(self, task_id: str) -> None:
        visits = self._visits(task_id)
        title = self._need(task_id).title
        for visit, left in zip(visits, visits[1:], strict=False):
            if visit.state in _GATES:
                reason = f"{task_id} waited for the manager until {timestamp(left.at)}."
                words = f"{visit.state}, decided: {title}"
                self._draw_one_gate(task_id, visit.state, visit.oid, words, "done", reason)

    def _draw_one_gate(
        self, task_id: str, at: str, mark: str, title: str, state: str, reason: str
    ) -> None:
        durable = f"gate:{task_id}:{at}:{mark[:_SHORT]}"
        refs = {
            "gate_ids": [durable],
            "todo_ids": [task_id],
            "review_packet_ids": [packet_id(task_id, self._source.commit)],
        }
        node = self._node("gate", durable, title, state, refs)
        self._edge("blocks", node, f"deliverable:{task_id}", reason)

    def _draw_summary(self, left: int) -> None:
        plural = "gate" if left == 1 else "gates"
        title = f"{left} more open {plural} not expanded"
        self._node("gate_summary", self._goal, title, "waiting", {"goal_ids": [self._goal]})

    # Edges between tasks.

    def _relate(self, task_id: str) -> None:
        task = self._need(task_id)
        here = f"deliverable:{task_id}"
        for other in task.depends_on:
            self._link("depends_on", here, other, f"{task_id} needs {other}.")
        if task.supersedes is not None:
            reason = f"{task_id} takes the place of {task.supersedes}."
            self._link("supersedes", here, task.supersedes, reason)
        if task.follows is not None:
            reason = f"{task_id} follows from {task.follows}."
            self._link("continues", here, task.follows, reason)

    def _link(self, relation: str, start: str, other: str, reason: str) -> None:
        end = f"deliverable:{other}"
        if end in self._nodes and end != start:
            self._edge(relation, start, end, reason)

    # What the world knows of one task.

    def _visits(self, task_id: str) -> tuple[Visit, ...]:
        return self._world.stages.tasks.get(task_id) or ()

    def _assignment(self, task_id: str) -> Assignment:
        return self._world.assignments.tasks.get(task_id) or Assignment()

    def _artifact(self, task_id: str) -> Artifact:
        return self._world.artifacts.tasks.get(task_id) or Artifact()


def _last_crossing(visits: Sequence[Visit]) -> tuple[int, int] | None:
    """Returns the last two visits in a row whose states belong to different roles."""
    found = None
    last: int | None = None
    for here, visit in enumerate(visits):
        role = machine.STAGE[visit.state].role
        if role is None:
            continue
        if last is not None and machine.STAGE[visits[last].state].role != role:
            found = (last, here)
        last = here
    return found


def _taker(visits: Sequence[Visit], there: int, stints: Sequence[Stint]) -> str | None:
    """Returns who has first claimed the task in a visit, None where nobody has."""
    visit = visits[there]
    end = visits[there + 1].at if there + 1 < len(visits) else None
    for one in stints:
        in_time = one.start >= visit.at and (end is None or one.start <= end)
        if one.state == visit.state and in_time:
            return one.actor
    return None


def _latest_round(visits: Sequence[Visit]) -> int | None:
    """Returns where the last finished work of an author has come in, None where none has."""
    for here in range(len(visits) - 1, 0, -1):
        if visits[here].event == "submit" and visits[here - 1].state in machine.AUTHOR_STATES:
            return here
    return None


def _public(text: str, limit: int) -> tuple[str, bool]:
    """Returns a text as one short line without secrets and paths, and whether it held any."""
    # The whole value is looked at before it is cut: half a secret would not be known as one.
    safe = redact(text)
    line = " ".join(safe.split())
    return line if len(line) <= limit else line[: limit - 3] + "...", safe != text

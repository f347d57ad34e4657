"""Five clones and a bare remote: whatever they do alone, and wherever they die, they agree.

The real verbs run on real repositories in one process. Everything is chosen by the seed, which is
part of the name of the test: the same seed tells the same story again.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from gittasks.domain.errors import GittasksError
from gittasks.domain.machine import CLAIMABLE, HELD, STAGE
from gittasks.domain.replayed import Replayed
from gittasks.domain.requests import Claim, Create, Speaker
from gittasks.domain.task import Task
from gittasks.ledger import sync as ledgers
from gittasks.workflow import (
    abort,
    aftermath,
    check,
    claim,
    configure,
    create,
    dependencies,
    edit,
    feedback,
    hierarchy,
    hold,
    note,
    resume,
    sharing,
    submit,
    sync,
    work_branches,
)
from gittasks.workflow.project import Project
from gittasks.workspaces import records
from tests.support.clones import Clone, Crash, Fragile, Team, duplicate_push, publish_dying
from tests.support.git import git
from tests.support.remotes import away

# On a busy machine they take minutes.
pytestmark = pytest.mark.timeout(900)

CLONES = 5
EVENTS = 520
"""How many events one story has at least; the stories of the suite have more than 2,000."""
SEEDS = (1, 2, 3, 4)
EVENTS_SLOW = 4_200
SEEDS_SLOW = (11, 12, 13, 14, 15)
AGENTS = ("pi", "rho", "tau")
"""Who works in every clone: names that do not tell the clones apart."""
OPEN_TASKS = 14
BODY = "Build a wall.\n\nOf brick.\n\nAs high as a man.\n\nBefore winter.\n"


class Story:
    """What the people and agents of a team do, in which order, and what becomes of it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.dice = Random(seed)
        self.team = Team(folder, CLONES, self.dice)
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.count = 0

    def play(self, events: int) -> None:
        """Lets things happen until so many events were accepted somewhere, and then all meet."""
        while len(self.team.accepted) < events:
            one = self.dice.choice(self.team.clones)
            for _ in range(self.dice.randrange(2, 13)):
                self.act(one)
            if self.dice.random() < 0.5:
                self._meet(one)
            if self.dice.random() < 0.01:
                self.team.converge()
        self.team.converge()
        self.team.assert_sound()

    def act(self, one: Clone) -> None:
        """Lets somebody in a clone do one thing that may be allowed."""
        one.clock.goes_on()
        verb = self.dice.choice(_VERBS_BY_WEIGHT)
        tasks = one.tasks()
        alive = [task for task in tasks if task.is_open]
        if len(alive) < OPEN_TASKS and self.dice.random() < 0.3:
            verb = "create"
        if not alive and verb not in _NEEDS_NO_TASK:
            verb = "create"
        self._try(verb, lambda: VERBS[verb](self, one, alive))

    def _try(self, verb: str, act: Callable[[], object]) -> None:
        try:
            act()
        except GittasksError as refusal:
            self.refused[f"{verb}: {type(refusal).__name__}"] += 1
        except Crash:
            self.done[f"{verb} and die"] += 1
        else:
            self.done[verb] += 1

    def _meet(self, one: Clone) -> None:
        """Lets a clone speak with the remote, which may be the last thing it does."""
        how = self.dice.random()
        if how < 0.2:
            at, after = self.dice.randrange(4), self.dice.random() < 0.6
            self.team.exchange(one, lambda project: _sync_dying(project, at, after=after))
            return
        if how < 0.25:
            with away(self.team.remote):
                assert not self.team.exchange(one)
            return
        verb = self.dice.choice((sync.sync, sync.sync, _pull, _push, duplicate_push))
        self.team.exchange(one, verb)

    def told(self, seed: int) -> str:
        """Returns what happened, in a few lines."""
        return (
            f"seed {seed}: {len(self.team.accepted)} events were accepted by some clone\n"
            f"done {dict(self.done)}\nrefused {dict(self.refused)}\n"
            f"on the remote {dict(self.team.kinds())}, {len(self.team.landings())} landed\n"
        )

    def text(self) -> str:
        """Returns words that were not said before."""
        self.count += 1
        return f"thing {self.count}"

    def chance(self, share: float) -> bool:
        """Answers yes in so many cases."""
        return self.dice.random() < share


def _sync_dying(project: Project, at: int, *, after: bool) -> None:
    """Syncs until the machine goes out: while the remote is asked, or between replay and push."""

    def followed(replayed: Replayed) -> None:
        if not at:
            raise Crash
        aftermath.follow(project, replayed)

    ledgers.sync(
        Fragile(project, at, after=after),
        work_branches.to_push(project),
        names=(project.base,),
        globs=sharing.globs(project),
        followed=followed,
    )


def _pull(project: Project) -> None:
    sync.sync(project, push=False)


def _push(project: Project) -> None:
    sync.sync(project, pull=False)


# ------------------------------------------------------------------------------- what is done


def _create(story: Story, one: Clone, alive: list[Task]) -> None:
    dice = story.dice
    ids = [task.id for task in alive]
    closed = [task.id for task in one.tasks() if not task.is_open]
    new = create.New(
        story.text(),
        BODY.encode() if story.chance(0.6) else None,
        depends_on=dice.sample(ids, min(len(ids), dice.choice((0, 0, 1, 2)))),
        parent=dice.choice(ids) if ids and story.chance(0.2) else None,
        labels=("urgent",) if story.chance(0.2) else (),
        priority=dice.randrange(4),
        supersedes=dice.choice([*ids, *closed]) if ids and story.chance(0.08) else None,
        follows=dice.choice([*ids, *closed]) if ids and story.chance(0.1) else None,
        idempotency_key=f"key {dice.randrange(40)}" if story.chance(0.15) else None,
        enter=dice.choice((None, "design", "plan", "work", "work", "work")),
    )
    confirmed = story.chance(0.15)
    if confirmed:
        story.team.note_down(one)
        one.close()
    outcome = create.create(one.project(offline=not confirmed), new)
    if confirmed:
        story.team.confirmed_tasks[outcome.task.uid] = outcome.task.id


def _create_many(story: Story, one: Clone, alive: list[Task]) -> None:
    lines = [
        f'{{"title": "{story.text()}", "enter": "work", "key": "{n}", "depends_on": {_deps(n)}}}'
        for n in range(story.dice.randrange(2, 7))
    ]
    create.create_all(one.project(), "\n".join(lines).encode(), "tasks.jsonl")


def _deps(number: int) -> str:
    return f'["{number - 1}"]' if number % 2 else "[]"


def _advance(story: Story, one: Clone, alive: list[Task]) -> None:
    """Takes a task one step on, as whoever may."""
    mine = [task for task in alive if task.claim and _is_held_in(one, task)]
    ends = [task for task in alive if task.state == "MANAGER_REVIEW"]
    task = story.dice.choice(mine if mine and story.chance(0.6) else ends or alive)
    if task.state == "CHECK":
        check.check(one.project(), task.id, record=True)
    elif task.state in CLAIMABLE:
        _work(story, one, task)
    elif task.state in HELD:
        resume.resume(one.project(), task.id)
    elif task.state == "MANAGER_REVIEW":
        if story.chance(0.6):
            story.team.note_down(one)
            one.close()
            submit.submit(one.project(offline=False), task.id)
        elif story.chance(0.6):
            feedback.feedback(one.project(), task.id, [story.text()])
        else:
            abort.abort(one.project(), task.id, recursive=True)
    else:
        submit.submit(one.project(), task.id, enter=story.dice.choice(("design", "plan", "work")))


def _is_held_in(one: Clone, task: Task) -> bool:
    """Tells whether somebody in a clone holds a task."""
    assert task.claim is not None
    return records.with_claim(one.project().state_dir, task.claim) is not None


def _work(story: Story, one: Clone, task: Task) -> None:
    dice = story.dice
    if task.claim is None:
        _claim(story, one, [task])
        return
    project = one.project(task.claimed_by)
    if story.chance(0.1):
        hold.hold(project, task.id, story.text())
        return
    if task.state in ("DESIGN_REVIEW", "PLAN_REVIEW", "WORK_REVIEW"):
        if story.chance(0.35):
            feedback.feedback(project, task.id, [story.text()])
        else:
            submit.submit(project, task.id)
        return
    if task.state == "WORK":
        assert task.branch is not None
        if project.ledger.reader.get(f"refs/heads/{task.branch}") is not None:
            one.work_on(task.branch, story.text())
    said = f"1. {story.text()}" if task.state == "WORK" else _HEADINGS[task.state] + story.text()
    submit.submit(project, task.id, text=said.encode(), check=dice.random() < 0.8)


_HEADINGS = {"DESIGN": "## Design\n\n", "PLAN": "## Todos\n\n- [ ] "}


def _claim(story: Story, one: Clone, alive: list[Task]) -> None:
    dice = story.dice
    confirmed = story.chance(0.15)
    agent = dice.choice(AGENTS)
    wanted = None if story.chance(0.3) else dice.choice(alive).id
    if confirmed:
        story.team.note_down(one)
        one.close()
    outcome = claim.claim(
        one.project(agent, offline=not confirmed),
        wanted,
        take_next=wanted is None,
        with_tree=False,
    )
    if confirmed and outcome.changed:
        assert outcome.task.claim is not None
        story.team.confirmed_claims[outcome.task.claim] = outcome.task.id


def _publish_and_die(story: Story, one: Clone, alive: list[Task]) -> None:
    """Claims or creates where all see it, and dies while the remote is asked or told."""
    story.team.note_down(one)
    one.close()
    at, after = story.dice.randrange(1, 4), story.chance(0.7)
    actor = story.dice.choice(AGENTS)
    project = one.project(actor, offline=False)
    free = [task for task in alive if task.state in CLAIMABLE and not task.claim]
    request: Create | Claim
    if not free or story.chance(0.3):
        request = Create(story.text(), os.urandom(16).hex(), BODY.encode(), (), 2, (), ())
        speaker = Speaker(actor, "manager")
    else:
        task = story.dice.choice(free)
        role = STAGE[task.state].role
        assert role is not None
        secret, mark = records.new_secret()
        record = records.ClaimRecord(mark, secret, task.id, task.uid, actor, role, task.state)
        records.write(project.state_dir, record)
        base = git(one.folder, "rev-parse", "master")
        branch = task.branch or f"task/{task.id}-{task.uid[:4]}"
        ends = project.clock() + 3_600
        request = Claim(task.id, mark, ends, branch, task.base or base, task.dispatched or base)
        speaker = Speaker(actor, role, mark)
    try:
        publish_dying(project, [request], speaker, at, after=after)
    finally:
        # The next command is another process.
        one.close()


def _release(story: Story, one: Clone, alive: list[Task]) -> None:
    task = story.dice.choice([task for task in alive if task.claim] or alive)
    if story.chance(0.5):
        claim.release(one.project(), task.id, story.text(), force=True)
    else:
        claim.release(one.project(task.claimed_by), task.id)


def _title(story: Story, one: Clone, alive: list[Task]) -> None:
    edit.edit(one.project(), story.dice.choice(alive).id, title=story.text())


def _field(story: Story, one: Clone, alive: list[Task]) -> None:
    dice = story.dice
    assignments = {
        "priority": str(dice.randrange(5)),
        "labels": dice.choice(('["a"]', '["a", "b"]', "[]")),
        "assignee": dice.choice(AGENTS),
        "x-mark": f' "{dice.randrange(5)}"',
        "checks": '["true"]',
    }
    names = dice.sample(sorted(assignments), dice.choice((1, 1, 2)))
    spelled = [f"{name}={assignments[name]}" for name in names if name != "checks"]
    unset = ["labels"] if story.chance(0.1) and "labels" not in names else []
    edit.edit(one.project(), dice.choice(alive).id, assignments=spelled, unset=unset)


def _body(story: Story, one: Clone, alive: list[Task]) -> None:
    task = story.dice.choice(alive)
    lines = one.project().ledger.graph().body(task.id).decode().split("\n")
    lines[story.dice.randrange(len(lines))] = story.text()
    edit.edit(one.project(), task.id, body="\n".join(lines).encode(), force=story.chance(0.2))


def _needs(story: Story, one: Clone, alive: list[Task]) -> None:
    task = story.dice.choice(alive)
    if task.depends_on and story.chance(0.5):
        dependencies.remove(one.project(), task.id, [story.dice.choice(task.depends_on)])
    else:
        dependencies.add(one.project(), task.id, [story.dice.choice(alive).id])


def _note(story: Story, one: Clone, alive: list[Task]) -> None:
    task = story.dice.choice(alive)
    actor = story.dice.choice((None, *AGENTS))
    seen = actor is None and bool(task.attention)
    note.note(one.project(actor), task.id, story.text(), artifacts=["pr=1"], seen=seen)


def _hold(story: Story, one: Clone, alive: list[Task]) -> None:
    hold.hold(one.project(), story.dice.choice(alive).id, story.text())


def _resume(story: Story, one: Clone, alive: list[Task]) -> None:
    held = [task for task in alive if task.state in HELD]
    resume.resume(one.project(), story.dice.choice(held or alive).id)


def _abort(story: Story, one: Clone, alive: list[Task]) -> None:
    abort.abort(one.project(), story.dice.choice(alive).id, recursive=story.chance(0.4))


def _reparent(story: Story, one: Clone, alive: list[Task]) -> None:
    parent = None if story.chance(0.3) else story.dice.choice(alive).id
    hierarchy.reparent(one.project(), story.dice.choice(alive).id, parent)


def _reorder(story: Story, one: Clone, alive: list[Task]) -> None:
    task = story.dice.choice(alive)
    where = story.dice.choice(("before", "after", "first", "last"))
    sibling = story.dice.choice(alive).id if where in ("before", "after") else None
    hierarchy.reorder(one.project(), task.id, where, sibling)  # type: ignore[arg-type]  # one of four


def _configure(story: Story, one: Clone, alive: list[Task]) -> None:
    dice = story.dice
    if story.chance(0.4):
        text = f"Template {story.text()}\n"
        configure.edit_text(one.project(), "template", lambda path: _write(path, text))
    elif story.chance(0.2):
        configure.unset(one.project(), "rejection_limit")
    else:
        key, value = dice.choice(
            (("rejection_limit", str(dice.randrange(2, 5))), ("lease", f"{dice.randrange(1, 9)}h"))
        )
        configure.set_value(one.project(), key, value)


def _write(path: str, text: str) -> None:
    Path(path).write_text(text, encoding="utf-8")


VERBS: dict[str, Callable[[Story, Clone, list[Task]], None]] = {
    "create": _create,
    "create many": _create_many,
    "advance": _advance,
    "claim": _claim,
    "publish": _publish_and_die,
    "release": _release,
    "title": _title,
    "field": _field,
    "body": _body,
    "needs": _needs,
    "note": _note,
    "hold": _hold,
    "resume": _resume,
    "abort": _abort,
    "reparent": _reparent,
    "reorder": _reorder,
    "configure": _configure,
}
_WEIGHTS = {
    "create many": 2,
    "advance": 18,
    "claim": 4,
    "note": 3,
    "body": 4,
    "field": 4,
    "needs": 3,
    "title": 2,
}
_VERBS_BY_WEIGHT = [verb for verb in VERBS for _ in range(_WEIGHTS.get(verb, 1))]
_NEEDS_NO_TASK = ("create", "create many", "configure")


def _told(folder: Path, seed: int, events: int) -> Story:
    story = Story(folder, seed)
    try:
        story.play(events)
    finally:
        sys.stdout.write(story.told(seed))
    return story


@pytest.mark.parametrize("seed", SEEDS)
def test_clones_agree_whatever_they_do_alone(tmp_path: Path, seed: int) -> None:
    story = _told(tmp_path, seed, EVENTS)
    # Otherwise they would have had nothing to agree about.
    assert story.team.kinds().keys() >= {"rejected", "renumber", "claim", "pass", "unblock"}


def test_a_remote_that_was_set_back_gets_all_again(tmp_path: Path) -> None:
    story = _told(tmp_path, 21, 150)
    story.team.set_back(40)
    # What was confirmed since then may be decided otherwise by whoever comes first.
    story.team.confirmed_claims.clear()
    story.team.confirmed_tasks.clear()
    story.play(300)


def test_a_clone_that_was_copied_says_nothing_twice(tmp_path: Path) -> None:
    story = Story(tmp_path, 31)
    one, other = story.team.clones[:2]
    for _ in range(25):
        story.act(one)
        story.act(other)
    one.close()
    copied = Clone(Path(shutil.copytree(one.folder, tmp_path / "copied")), one.clock)
    assert story.team.exchange(other)
    # Both have the same events to put on top of what the other clone did.
    assert story.team.exchange(one)
    story.team.clones.append(copied)
    assert story.team.exchange(copied)
    story.play(150)


@pytest.mark.slow
@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("seed", SEEDS_SLOW)
def test_clones_agree_after_a_long_time(tmp_path: Path, seed: int) -> None:
    _told(tmp_path, seed, EVENTS_SLOW)

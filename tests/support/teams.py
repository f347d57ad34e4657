"""A team in one process: a repository, a pool, and runners that tick when a test says so.

Most agents here are puppets: they take no process and no time, keep what they are told, and do
what the test makes them do. Those that are real are tiny scripts, or play a plan.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gittasks import agents
from gittasks.agents.base import Activity, Capabilities, Event, Exited, RunSpec, Settled, Usage
from gittasks.domain.events import Event as Written
from gittasks.domain.task import Task
from gittasks.runner.loop import Runner
from gittasks.workflow.create import New, create
from gittasks.workflow.project import Options, Project
from gittasks.workspaces import records
from tests.support.git import git
from tests.workflow.ground import NOW, begun

PUPPET = "pi-north-m-1"
"""The slot of the usual puppet."""

_PAUSE = 0.002

# What a script of `Team.script` begins with. Its prompts are kept as files, a turn each, and what
# it hands in by itself costs no process of the tool.
_PRELUDE = """#!/bin/sh
told={told}/$GITTASKS_TASK
mkdir -p "$told"
turn=$(( $(ls "$told" | wc -l) + 1 ))
cat > "$told/$turn"
hand() {{
  id=$(od -An -tx1 -N16 /dev/urandom | tr -d ' \\n')
  printf '{{"verb":"%s","task":"%s","claim":"%s","text":"As asked."}}' \\
    "$1" "$GITTASKS_TASK" "${{GITTASKS_OUTBOX##*/}}" > "$GITTASKS_OUTBOX/.part"
  mv "$GITTASKS_OUTBOX/.part" "$GITTASKS_OUTBOX/$id.json"
}}
"""


def begin(folder: Path) -> Path:
    """Makes the repository that every team gets a copy of."""
    begun(folder / "repo")
    return folder


def puppet(provider: str = "north", **more: Any) -> dict[str, Any]:
    """Returns an entry of the pool whose agents are puppets."""
    return {"type": "pi", "provider": provider, "model": "m", **more}


class Puppet:
    """The run of one agent, as its runner has it, and the strings that a test pulls."""

    def __init__(self, spec: RunSpec, number: int) -> None:
        self.spec = spec
        self.session: str | None = spec.session or f"session-{number}"
        self.pid: int | None = None
        self.prompts: list[str] = []
        self.steered: list[str] = []
        self.ways: list[str] = []
        """How it was ended up to now: interrupt, close, terminate, kill."""
        self.is_stubborn = False
        """It ends only when it is killed."""
        self.defect: Exception | None = None
        """What is raised instead of what it has told."""
        self.is_there = True
        """Something of it still runs."""
        self._told: list[Event] = []

    # What a runner does.

    def prompt(self, text: str) -> None:
        self.prompts.append(text)

    def steer(self, text: str) -> bool:
        self.steered.append(text)
        return True

    def events(self) -> Sequence[Event]:
        if self.defect is not None:
            raise self.defect
        told, self._told = self._told, []
        return told

    def interrupt(self) -> None:
        self.ways.append("interrupt")

    def close(self) -> None:
        self._end("close", is_deaf=self.is_stubborn)

    def terminate(self) -> None:
        self._end("terminate", is_deaf=self.is_stubborn)

    def kill(self) -> None:
        self._end("kill", is_deaf=False)

    def is_alive(self) -> bool:
        return self.is_there

    def _end(self, way: str, *, is_deaf: bool) -> None:
        if self.is_there:
            self.ways.append(way)
        self.is_there = self.is_there and is_deaf

    # What a test makes it do.

    @property
    def task(self) -> str:
        """Returns the task that it works on."""
        return self.spec.env["GITTASKS_TASK"]

    @property
    def tree(self) -> Path:
        """Returns where it works."""
        return Path(self.spec.tree)

    @property
    def outbox(self) -> Path:
        """Returns the folder that it leaves its results in."""
        return Path(self.spec.env["GITTASKS_OUTBOX"])

    def tell(self, *events: Event) -> None:
        """Lets its program tell what has happened."""
        self._told += events

    def calls(self, target: str, times: int = 1) -> None:
        """Lets it run the same command again and again."""
        for _ in range(times):
            self.tell(Activity("shell", target), Activity("shell", target, is_over=True))

    def uses(self, cost: float = 0.0, tokens: int = 0) -> None:
        """Lets it tell what it has used in all."""
        self.tell(Usage(cost, tokens))

    def settle(self, outcome: Any = "done", error: str = "", **more: Any) -> None:
        """Ends its turn."""
        self.tell(Settled(outcome, error, **more))

    def die(self, code: int = -9) -> None:
        """Ends its process in the middle of everything."""
        self.is_there = False
        self.tell(Exited(code))

    def leave(self, verb: str, *, id: str | None = None, **entry: Any) -> str:
        """Leaves an entry in its outbox, as `git tasks` does; returns the id."""
        entry_id = id or os.urandom(16).hex()
        told = {"verb": verb, "task": self.task, "claim": self.outbox.name, **entry}
        (self.outbox / f"{entry_id}.json").write_text(json.dumps(told), encoding="utf-8")
        return entry_id

    def work(self) -> str:
        """Commits a new file on the branch of its task; returns the commit."""
        (self.tree / f"{os.urandom(4).hex()}.txt").write_text("done\n", encoding="utf-8")
        git(self.tree, "add", "-A")
        git(self.tree, "commit", "-q", "-m", "Work")
        return git(self.tree, "rev-parse", "HEAD")

    def submit(self, text: str = "As asked.") -> None:
        """Hands in what its stage wants, and ends the turn."""
        tip = self.work() if self.spec.env["GITTASKS_ROLE"] == "worker" else None
        self.leave("submit", text=text, tip=tip)
        self.settle()


class Stage:
    """The adapter of the puppets, with all that were started, oldest first."""

    def __init__(self) -> None:
        self.puppets: list[Puppet] = []
        self.problem: str | None = None
        """Why the program is not there."""

    def probe(self, _program: object, _env: object) -> Capabilities:
        problems = () if self.problem is None else (self.problem,)
        return Capabilities(live=True, steer=True, resume=True, problems=problems)

    def start(self, spec: RunSpec) -> Puppet:
        self.puppets.append(Puppet(spec, len(self.puppets) + 1))
        return self.puppets[-1]


class Team:
    """A repository with a ledger and a pool, a clock, and the runners that work there."""

    def __init__(self, ground: Path, folder: Path, stage: Stage) -> None:
        shutil.copytree(ground, folder, symlinks=True)
        self.folder = folder / "repo"
        self.stage = stage
        self.now = float(NOW)
        self.is_running = False
        """The clock is that of the machine."""
        self.told: list[dict[str, Any]] = []
        self.runners: list[Runner] = []
        self._given: list[Puppet] = []
        self._state_dir = self.folder / ".git" / "gittasks"

    # Before the runner.

    def project(self, actor: str | None = None, **environ: str) -> Project:
        """Returns the project as the manager, or somebody else, sees it now."""
        env = {**os.environ, **environ}
        return Project.open(Options(str(self.folder), actor), env, clock=self.clock)

    def pool(self, *agents: Mapping[str, Any], **more: Any) -> None:
        """Writes the pool file."""
        self._state_dir.mkdir(exist_ok=True)
        told = {"agents": agents, "sandbox": "off", **more}
        (self._state_dir / "agents.json").write_text(json.dumps(told), encoding="utf-8")

    def configure(self, name: str, value: str) -> None:
        """Changes a setting of the clone."""
        git(self.folder, "config", name, value)

    def task(self, title: str = "One", **more: Any) -> str:
        """Writes a task down, usually one to design; returns its id."""
        return create(self.project(), New(title, **{"enter": "design", **more})).task.id

    def script(self, body: str, **more: Any) -> dict[str, Any]:
        """Returns an entry of the pool that runs lines of sh; `hand VERB` leaves a result."""
        path = self.folder.parent / f"agent-{os.urandom(4).hex()}"
        path.write_text(_PRELUDE.format(told=self.folder.parent / "told") + body, encoding="utf-8")
        path.chmod(0o700)
        return {"type": "command", "command": [str(path)], **more}

    def plan(self, plan: Any, **more: Any) -> dict[str, Any]:
        """Returns an entry of the pool that plays a plan."""
        path = self.folder.parent / "plan.json"
        path.write_text(json.dumps(plan), encoding="utf-8")
        return {"type": "scripted", "command": [str(path)], **more}

    # The runners.

    def clock(self) -> float:
        """Returns the time, which stands still until it is advanced, or goes on by itself."""
        return time.time() if self.is_running else self.now

    def start(self, **options: Any) -> Runner:
        """Starts a runner, which ends with the test."""
        runner = Runner(self.project(), tell=self._hear, clock=self.clock, **options)
        runner.__enter__()
        self.runners.append(runner)
        return runner

    def close(self) -> None:
        """Ends all runners."""
        while self.runners:
            self.end(self.runners[-1])

    def end(self, runner: Runner) -> None:
        """Ends one runner, at once."""
        self.runners.remove(runner)
        runner.__exit__(None, None, None)
        runner.project.close()

    def tick(self, times: int = 1) -> None:
        """Lets every runner look at everything so many times."""
        for _ in range(times):
            for runner in self.runners:
                runner.tick()

    def until(self, is_so: Callable[[], object], seconds: float = 20.0) -> None:
        """Lets the runners tick until something is so."""
        deadline = time.monotonic() + seconds
        self.tick()
        while not is_so():
            assert time.monotonic() < deadline, self.told
            time.sleep(_PAUSE)
            self.tick()

    def advance(self, seconds: float) -> None:
        """Lets time pass, and the runners look once."""
        self.now += seconds
        self.tick()

    def until_told(self, agent: Puppet, times: int) -> None:
        """Lets the runners tick until an agent was told something so many times."""
        self.until(lambda: len(agent.prompts) >= times)

    def until_heard(self, event: str, times: int = 1) -> None:
        """Lets the runners tick until they have told of something so many times."""
        self.until(lambda: len(self.heard(event)) >= times)

    def agent(self) -> Puppet:
        """Returns the next puppet that is given something, and that no test has seen yet."""
        self.until(lambda: len(self.stage.puppets) > len(self._given))
        self._given.append(self.stage.puppets[len(self._given)])
        return self._given[-1]

    def agents(self, count: int) -> list[Puppet]:
        """Returns so many of them."""
        return [self.agent() for _ in range(count)]

    def rest(self) -> None:
        """Lets the runners look until nobody ends any more."""
        ending = ("SPAWNING", "ENDING")
        self.until(lambda: all(s.state not in ending for r in self.runners for s in r.seats))
        self.tick()

    # What came of it.

    def heard(self, event: str) -> list[dict[str, Any]]:
        """Returns what was told of one kind, without kind and time."""
        return [
            {name: value for name, value in told.items() if name not in ("event", "at")}
            for told in self.told
            if told["event"] == event
        ]

    def seen(self, task_id: str = "000001") -> Task:
        """Returns a task as it is now."""
        return self.project().task(task_id)

    def state(self, task_id: str = "000001") -> str:
        """Returns the state of a task."""
        return self.seen(task_id).state

    def is_held(self, task_id: str = "000001") -> bool:
        """Tells whether a task waits for the manager's answer."""
        return self.state(task_id).startswith("HELD")

    def history(self, task_id: str = "000001") -> list[Written]:
        """Returns the events of a task, oldest first."""
        return list(self.project().ledger.history(task_id))[::-1]

    def kinds(self, task_id: str = "000001") -> list[str]:
        """Returns what kinds of events a task has, oldest first."""
        return [event.kind for event in self.history(task_id)]

    def prompts(self, task_id: str = "000001") -> list[str]:
        """Returns what a script was told for a task."""
        folder = self.folder.parent / "told" / task_id
        return [(folder / name).read_text() for name in sorted(os.listdir(folder), key=int)]

    def holder(self, task_id: str = "000001") -> str | None:
        """Returns who holds a task."""
        return self.seen(task_id).claimed_by

    def record(self, task_id: str = "000001") -> records.ClaimRecord | None:
        """Returns what this clone knows of the claim on a task."""
        claim = self.seen(task_id).claim
        return None if claim is None else records.with_claim(str(self._state_dir), claim)

    def slots(self) -> dict[str, tuple[str, str]]:
        """Returns state and reason of each slot, as other terminals see them."""
        from gittasks.workflow import pool

        for runner in self.runners:
            runner.upkeep.publish(force=True)
        return {
            row["slot"]: (row["state"], row["why"])
            for view in pool.views(self.project())
            for row in pool.rows_of(view)
        }

    def _hear(self, record: Mapping[str, Any]) -> None:
        self.told.append(dict(record))


def on_stage(monkeypatch: Any) -> Stage:
    """Puts puppets in the place of one agent program."""
    stage = Stage()
    monkeypatch.setitem(agents._LOADERS, "pi", lambda: stage)
    return stage

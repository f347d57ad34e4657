"""Teams of the real programs at work, with a model that plays a script.

Run with `-m real`; see tests/support/clients.py for what they need.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gittasks.agents import orphans
from gittasks.domain.events import Event
from gittasks.domain.task import Cost
from gittasks.plumbing import processes
from gittasks.workflow.project import Options, Project
from tests.support import clients
from tests.support.cli import Result, environment, tasks, tasks_process
from tests.support.git import git, make_repository

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

STEPS = {"auto": "bubblewrap", "off": "bare"}
"""How far apart agents are kept, by what is wished for."""

SLOTS = {
    "pi": "pi-local-fake-model-1",
    "claude": "claude-claude-sonnet-4-5-1",
    "codex": "codex-local-fake-model-1",
}
EXECUTABLES = {"pi": "node", "claude": "claude", "codex": "codex"}

# What each answer of the model has used, and what that costs: pi is told the price by its own
# settings, Claude Code knows that of its models, and Codex tells none.
USED = {"input": 1000, "output": 50, "cache_read": 0, "cache_write": 0}
TOKENS = 1050
PRICES = {"pi": 0.0011, "claude": 0.00375}
WATTS = {"wattage": 3600, "costPerKwh": 1}
"""A tenth of a cent for each second."""


def says(text: str = "Done.", **turn: Any) -> dict[str, Any]:
    """Returns an answer of the model that ends its turn."""
    return {"text": text, "usage": USED, **turn}


def runs(command: str, expect: str, **turn: Any) -> dict[str, Any]:
    """Returns an answer that runs a command, if the model was asked so."""
    return {"run": command, "expect": expect, "usage": USED, **turn}


def noted(words: str) -> str:
    """Returns the command that writes a line at the end of the assignment."""
    return f"echo '{words}' >>../ASSIGNMENT.md"


WHOLE = {
    "designer": [
        runs("cat ../ASSIGNMENT.md", 'the designer of task 000001: "Greet"'),
        runs(f"{noted('Say it in app.txt.')}; git tasks submit", "Greet the world."),
        says(expect="submit DESIGN -> DESIGN_REVIEW"),
    ],
    "planner": [
        runs(f"{noted('1. Write app.txt.')}; git tasks submit", 'task 000001: "Greet"'),
        says(expect="submit PLAN -> PLAN_REVIEW"),
    ],
    "worker": [
        runs(
            "echo hello >app.txt; git commit -qam 'Say it.'; touch scratch.txt; "
            f"{noted('1. Said.')}; git tasks submit",
            "Do what the assignment asks for",
        ),
        runs("rm scratch.txt; git tasks submit", r"uncommitted changes: \?\? scratch.txt"),
        says(expect="submit WORK -> CHECK"),
        runs(
            "echo hello, world >app.txt; git commit -qam 'Say more.'; "
            f"{noted('The world was missing.')}; git tasks submit",
            "Make these commands succeed in this tree:\n\n> grep world app.txt",
        ),
        says(expect="submit WORK -> CHECK"),
        runs(
            "echo Hello, world >app.txt; git commit -qam 'Begin with a capital.'; "
            f"{noted('1. With a capital.')}; git tasks submit",
            "Finding 1:\n\n> Begin with a capital letter.",
        ),
        says(expect="submit WORK -> CHECK"),
    ],
    "reviewer": [
        runs("git tasks submit", "Judge the design"),
        says(expect="submit DESIGN_REVIEW -> PLAN"),
        runs("git tasks submit", "Judge the todos"),
        says(expect="submit PLAN_REVIEW -> WORK"),
        runs("git tasks diff", "Judge the change"),
        runs("git tasks feedback -m 'Begin with a capital letter.'", r"\+hello, world"),
        says(expect="feedback WORK_REVIEW -> WORK"),
        runs("git tasks submit", "Judge the change"),
        says(expect="submit WORK_REVIEW -> MANAGER_REVIEW"),
    ],
}
"""A check fails, a review rejects, and a submit is refused and repaired in the same turn."""

COURSE = [
    ("create", None, "NEW", "manager", 0),
    ("submit", "NEW", "DESIGN", "manager", 0),
    ("submit", "DESIGN", "DESIGN_REVIEW", "designer", 3),
    ("submit", "DESIGN_REVIEW", "PLAN", "reviewer", 2),
    ("submit", "PLAN", "PLAN_REVIEW", "planner", 2),
    ("submit", "PLAN_REVIEW", "WORK", "reviewer", 2),
    ("submit", "WORK", "CHECK", "worker", 3),
    ("fail", "CHECK", "WORK", "checker", 0),
    ("submit", "WORK", "CHECK", "worker", 2),
    ("pass", "CHECK", "WORK_REVIEW", "checker", 0),
    ("feedback", "WORK_REVIEW", "WORK", "reviewer", 3),
    ("submit", "WORK", "CHECK", "worker", 2),
    ("pass", "CHECK", "WORK_REVIEW", "checker", 0),
    ("submit", "WORK_REVIEW", "MANAGER_REVIEW", "reviewer", 2),
    ("submit", "MANAGER_REVIEW", "CLOSED", "manager", 0),
]
"""What happens in it: the event, from where to where, by whom, with how many answers."""


class World:
    """A repository with a pool of real programs, a home of their own, and their model."""

    def __init__(
        self, folder: Path, team: Mapping[str, Sequence[str]], parts: Mapping[str, list[Any]]
    ) -> None:
        """Takes the roles of each program, and what the model plays for each role."""
        for kind in team:
            clients.command(kind)
        self.folder = make_repository(folder / "repo")
        self.home = folder / "home"
        self.home.mkdir()
        self.model = clients.cast(parts).start()
        self.tree = folder / "repo.tasks" / "000001" / "tree"
        self.running: list[subprocess.Popen[str]] = []
        # The settings of git are those of the home, as everywhere else.
        gone = ("XDG_", "GIT_CONFIG_GLOBAL", "GIT_AUTHOR_", "GIT_COMMITTER_")
        self.env: dict[str, str | None] = {k: None for k in os.environ if k.startswith(gone)}
        pool = [self._entry(kind, roles) for kind, roles in team.items()]
        self.tasks("init", "-q")
        git(self.folder, "config", "gittasks.agentEnv", "MODEL_KEY")
        self.state = self.folder / ".git" / "gittasks"
        (self.state / "agents.json").write_text(json.dumps({"agents": pool}))

    def _entry(self, kind: str, roles: Sequence[str]) -> dict[str, Any]:
        program, env = clients.prepare(kind, self.home, self.model.url)
        self.env |= env
        if kind == "claude":
            # It is there wherever somebody has started it once.
            (self.home / ".claude.json").write_text('{"numStartups": 3}')
        named = {k: v for k, v in program._asdict().items() if v}
        return {**named, "roles": roles, **(WATTS if kind == "codex" else {})}

    def tasks(self, *args: str, **more: Any) -> Result:
        """Runs a command as the manager."""
        return tasks(self.folder, *args, env=self.env, **more)

    def run(self, *options: str) -> list[dict[str, Any]]:
        """Lets the team work until nothing is left to do; returns what was told."""
        return read(self.tasks("run", "--once", *options, timeout=240).out)

    def begin(self, *options: str) -> subprocess.Popen[str]:
        """Lets the team begin to work."""
        begun = tasks_process(self.folder, "run", "--once", *options, env=self.env)
        self.running.append(begun)
        return begun

    def project(self) -> Project:
        """Returns the project as the manager sees it now."""
        return Project.open(Options(str(self.folder)), environment(self.env))

    def history(self) -> list[Event]:
        """Returns the events of the task, oldest first."""
        return list(self.project().ledger.history("000001"))[::-1]

    def left(self) -> dict[int, str]:
        """Returns the processes that this home was given to, and what they are."""
        return {pid: executable(pid) for pid in processes.with_variable("HOME", str(self.home))}

    def asked(self, role: str) -> list[dict[str, Any]]:
        """Returns what the model was asked in a role, and answered by the script."""
        requests = self.model.requests
        return [one for one in requests if (one["lane"], one["turn"] is None) == (role, False)]

    def is_played(self) -> bool:
        """Tells whether the whole script was played, and nothing beside it."""
        state = self.model.state()
        return state["finished"] and not any(lane["exhausted"] for lane in state["lanes"])

    def transcript(self, slot: str) -> str:
        """Returns all words that a slot has written, as one text."""
        rows = self.tasks("tail", "1", "-n", "100000", "--json").json()["data"]
        # Codex also warns in plain words.
        written = [row["text"] for row in rows if row["slot"] == slot]
        records = [json.loads(text) if text.startswith("{") else text for text in written]
        return "\n".join(words for record in records for words in strings(record))

    def close(self) -> None:
        """Ends what still runs."""
        for process in self.running:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        for pid in self.left():
            os.kill(pid, signal.SIGKILL)
        self.model.stop()


def read(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def executable(pid: int) -> str:
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""


def strings(value: Any) -> Iterator[str]:
    """Yields every string in a record, and what shells in it are given to do."""
    if isinstance(value, str):
        yield value
        if value.startswith("/bin/bash -c "):
            yield shlex.split(value)[2]
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from strings(one)


def until(is_so: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def kinds_of(told: list[dict[str, Any]]) -> list[str]:
    return [one["event"] for one in told]


def require(sandbox: str) -> None:
    if sandbox == "auto" and shutil.which("bwrap") is None:
        pytest.skip("bwrap is not installed")


# -- from the beginning to master


class Story:
    """The whole course of a task, played once; what came of it is looked at by several tests."""

    def __init__(self, folder: Path, kind: str, sandbox: str) -> None:
        self.kind, self.sandbox = kind, sandbox
        authors = ["designer", "planner", "worker"]
        team = {"pi": ["reviewer"]} | {kind: authors + ["reviewer"] * (kind == "pi")}
        self.world = world = World(folder, team, WHOLE)
        self.is_named = sandbox == "auto"
        if self.is_named:
            (world.home / ".gitconfig").write_text("[user]\nname = Ada\nemail = ada@example.org\n")
        world.tasks(
            "new", "Greet", "-m", "Greet the world.", "--check", "grep world app.txt",
            "--enter", "design",
        )  # fmt: skip
        began = time.monotonic()
        self.told = world.run("--sandbox", sandbox)
        self.seconds = time.monotonic() - began
        self.left = world.left()
        self.landed = world.tasks("submit", "1", check=None)
        self.history = world.history()

    def kind_of(self, role: str) -> str:
        """Returns the program of a role."""
        return "pi" if role == "reviewer" else self.kind

    def claims(self, role: str) -> list[str]:
        """Returns the commits of the claims of a role, oldest first."""
        rows = read(self.world.tasks("log", "1", "--jsonl").out)[::-1]
        return [row["commit"] for row in rows if (row["event"], row["role"]) == ("claim", role)]


@pytest.fixture(
    scope="module",
    params=[(kind, sandbox) for kind in clients.KINDS for sandbox in STEPS],
    ids="-".join,
)
def story(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Story]:
    kind, sandbox = request.param
    require(sandbox)
    played = Story(tmp_path_factory.mktemp("story"), kind, sandbox)
    yield played
    played.world.close()


def test_a_task_comes_to_master_through_a_check_and_a_review_that_refuse_it(story: Story) -> None:
    assert story.landed.out == "000001 submit MANAGER_REVIEW -> CLOSED\n"
    moves = [e for e in story.history if e.source != e.target]
    assert [(e.kind, e.source, e.target, e.role) for e in moves] == [one[:4] for one in COURSE]
    for event in moves:
        if event.role in WHOLE:
            assert event.actor == SLOTS[story.kind_of(event.role)]
    taken = [e for e in story.history if e.kind == "claim" and e.role in WHOLE]
    steps = {getattr(event.change, "sandbox", None) for event in taken}
    assert steps == {STEPS[story.sandbox]}
    master = git(story.world.folder, "log", "--first-parent", "--format=%s", "master")
    assert master == "000001: Greet\nStart"
    assert (story.world.folder / "app.txt").read_text() == "Hello, world\n"
    assert git(story.world.folder, "status", "--porcelain") == ""


def test_the_runner_tells_of_nothing_but_the_work(story: Story) -> None:
    pair, checked = ["dispatch", "settled"], ["check", "checked"]
    work = [*pair, *checked]
    assert kinds_of(story.told) == [
        "start", *4 * pair, *work, *work, *pair, *work, *pair, "end",
    ]  # fmt: skip
    end = {k: v for k, v in story.told[-1].items() if k != "at"}
    assert end == {
        "event": "end", "why": "the work is done", "killed": 0, "dispatched": 9, "settled": 9,
        "held": 0, "died": 0, "checked": 3,
    }  # fmt: skip
    resumed = [one["resumed"] for one in story.told if one["event"] == "dispatch"]
    assert resumed == [number == 5 for number in range(9)]


def test_the_model_was_asked_in_the_words_of_the_prompts(story: Story) -> None:
    assert story.world.is_played()
    for role, turns in WHOLE.items():
        asked = story.world.asked(role)
        assert [one["turn"] for one in asked] == list(range(len(turns)))
        firsts = [one for one in asked if "\n> grep" in one["text"] or f"the {role}" in one["text"]]
        claims = story.claims(role)
        assert len(firsts) == len(claims)
        for one, claim in zip(firsts, claims, strict=True):
            if one["turn"] == 3 and role == "worker":
                continue
            prompt = story.world.tasks("show", "1", "--prompt", "--at", claim).out
            assert prompt.strip() in one["text"]


def test_a_failed_check_goes_on_in_its_session_and_a_rejection_begins_another(
    story: Story,
) -> None:
    asked = [json.dumps(one["body"]) for one in story.world.asked("worker")]
    begun = "Do what the assignment asks for"
    assert [begun in words for words in asked] == 5 * [True] + 2 * [False]
    assert ["Make these commands succeed" in words for words in asked] == [
        *3 * [False], *2 * [True], *2 * [False],
    ]  # fmt: skip


def test_each_claim_has_its_cost(story: Story) -> None:
    costs: list[Cost] = [
        cost for e in story.history if (cost := getattr(e.change, "cost", None)) is not None
    ]
    expected = [one for one in COURSE if one[4]]
    assert [(c.state, c.slot, c.tokens) for c in costs] == [
        (source, SLOTS[story.kind_of(role)], answers * TOKENS)
        for _, source, _, role, answers in expected
    ]
    for cost, (*_, role, answers) in zip(costs, expected, strict=True):
        price = PRICES.get(story.kind_of(role))
        paid = cost.seconds / 1000 if price is None else answers * price
        assert cost.cost == pytest.approx(paid)
    assert sum(cost.seconds for cost in costs) <= story.seconds

    stats = story.world.tasks("stats", "--json").json()["data"]["cost"]
    whole = sum(cost.cost for cost in costs)
    assert stats["total"]["cost"] == pytest.approx(whole)
    assert {row["actor"]: row["tokens"] for row in stats["agents"]} == {
        slot: sum(c.tokens for c in costs if c.slot == slot) for slot in {c.slot for c in costs}
    }
    rows = story.world.tasks("timeline", "1", "--json").json()["data"]
    assert [row["cost"] for row in rows if row["cost"] is not None] == [c.cost for c in costs]
    shown = story.world.tasks("show", "1").out
    assert f"{whole:.2f} dollars, {21 * TOKENS} tokens" in shown


def test_the_transcripts_have_every_command_and_its_answer(story: Story) -> None:
    for role, turns in WHOLE.items():
        said = story.world.transcript(SLOTS[story.kind_of(role)])
        for turn in turns:
            assert str(turn.get("run", turn.get("text"))) in said
    said = story.world.transcript(SLOTS[story.kind])
    assert "The worktree has uncommitted changes: ?? scratch.txt." in said
    assert "Left for the runner, which records it.\n000001 submit WORK -> CHECK" in said


def test_the_commits_of_agents_have_a_name(story: Story) -> None:
    tip = next(e.commit for e in story.history[::-1] if e.kind == "pass")
    log = git(story.world.folder, "log", "--format=%an, %cn: %s", f"{tip}")
    name = "Ada" if story.is_named else SLOTS[story.kind]
    made = ("Begin with a capital.", "Say more.", "Say it.")
    assert log.splitlines() == [*(f"{name}, {name}: {words}" for words in made), "Ada, Ada: Start"]


def test_nothing_is_left(story: Story) -> None:
    assert story.left == {}
    clone = story.world.project().host
    assert orphans.of_clone(clone) == {}
    for folder in ("claims", "runs", "runners", "orders", "agents/*/outbox", "quarantine/0"):
        assert list(story.world.state.glob(f"{folder}*/*")) == []
    assert git(story.world.folder, "fsck", "--strict", "--no-dangling") == ""
    assert story.world.tasks("fsck").status == 0


# -- when something goes wrong


def alone(folder: Path, kind: str, *turns: dict[str, Any]) -> World:
    """Returns a world whose only agent is a worker, with a task that waits for it."""
    world = World(folder, {kind: ["worker"]}, {"worker": list(turns)})
    world.tasks("new", "Greet", "-m", "Greet the world.", "--enter", "work")
    return world


@pytest.fixture
def worlds(tmp_path: Path) -> Iterator[list[World]]:
    made: list[World] = []
    yield made
    for world in made:
        world.close()


WORK = f"echo hello >app.txt; git commit -qam 'Say it.'; {noted('Said.')}; git tasks submit"
ENDLESS = "touch begun; while true; do python3 -c 'import time; time.sleep(1)'; done"


@pytest.mark.parametrize("status", [429, 500])
@pytest.mark.parametrize("kind", clients.KINDS)
def test_a_provider_that_fails_for_a_while_is_waited_for(
    worlds: list[World], tmp_path: Path, kind: str, status: int
) -> None:
    # Each program tries once more by itself; only Codex does not where it has asked too often.
    times = 2 if (kind, status) == ("codex", 429) else 5
    fails = {"error": status, "message": "Not now.", "repeat": times}
    work = runs(WORK, "Do what the assignment asks for")
    worlds.append(alone(tmp_path, kind, runs("git tasks diff", "task 000001"), fails, work, says()))
    told = worlds[0].run()
    failed = {429: "limit", 500: "retry"}[status]
    assert kinds_of(told) == [
        "start", "dispatch", failed, failed, "settled", "check", "checked", "end",
    ]  # fmt: skip
    settled = told[4]
    assert (settled["target"], settled["tokens"]) == ("CHECK", 3 * TOKENS)
    assert kind == "codex" or settled["cost"] == pytest.approx(3 * PRICES[kind])
    assert (worlds[0].is_played(), worlds[0].left()) == (True, {})


@pytest.mark.parametrize("sandbox", STEPS)
@pytest.mark.parametrize("kind", clients.KINDS)
def test_what_a_killed_agent_has_begun_is_gone_on_with_by_another(
    worlds: list[World], tmp_path: Path, kind: str, sandbox: str
) -> None:
    require(sandbox)
    begin = runs(f"echo bye >app.txt; git commit -qam 'Begin.'; {ENDLESS}", "the worker of task")
    again = runs(f"cat app.txt; rm begun; {WORK}", "Do what the assignment asks for")
    world = alone(tmp_path, kind, begin, again, says(expect="bye(.|\n)*WORK -> CHECK"))
    worlds.append(world)
    runner = world.begin("--sandbox", sandbox)
    until((world.tree / "begun").exists)
    (agent,) = (pid for pid, name in world.left().items() if name == EXECUTABLES[kind])
    os.kill(agent, signal.SIGKILL)
    told = read(runner.communicate(timeout=120)[0])
    assert kinds_of(told) == [
        "start", "dispatch", "died", "dispatch", "settled", "check", "checked", "end",
    ]  # fmt: skip
    assert (told[-1]["killed"], told[3]["resumed"]) == (0, False)
    assert [e.kind for e in world.history() if e.role in ("worker", "tool")] == [
        "claim", "release", "claim", "submit",
    ]  # fmt: skip
    # Codex tells what it has used at the end of a turn, Claude Code what that costs.
    died: Any = next(e.change for e in world.history() if e.kind == "release")
    spent = {"pi": (PRICES["pi"], TOKENS), "claude": (0.0, USED["input"])}.get(kind)
    assert (died.why, died.reason in ("it ended with -9", "it ended with 137")) == ("died", True)
    assert spent in (None, (died.cost.cost, died.cost.tokens))
    assert told[4]["tokens"] == 2 * TOKENS
    assert (world.is_played(), world.left()) == (True, {})


@pytest.mark.parametrize("kind", clients.KINDS)
def test_a_session_goes_on_under_another_runner(
    worlds: list[World], tmp_path: Path, kind: str
) -> None:
    again = runs(
        "echo Hello >app.txt; git commit -qam 'Correct it.'; git tasks submit -m Corrected",
        "Make these",
    )
    world = alone(tmp_path, kind, runs(WORK, "task 000001"), says(), again, says())
    worlds.append(world)
    world.tasks("edit", "1", "--set", 'checks=["grep Hello app.txt"]')
    told = [record for _ in range(2) for record in world.run("--max-tasks", "1")]
    work = ["start", "dispatch", "settled", "check", "checked", "end"]
    assert kinds_of(told) == 2 * work
    settled = [one for one in told if one["event"] == "settled"]
    assert [one["tokens"] for one in settled] == [2 * TOKENS, 2 * TOKENS]
    asked = [json.dumps(one["body"]) for one in world.asked("worker")]
    assert ["Do what the assignment asks for" in words for words in asked] == 4 * [True]
    assert world.history()[-1].target == "WORK_REVIEW"
    assert (world.is_played(), world.left()) == (True, {})

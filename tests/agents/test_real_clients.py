"""The real programs do what their adapters rely on; run with `-m real`, see tests/support/clients.py."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gittasks.agents import ADAPTERS, orphans
from gittasks.agents.base import Activity, Exited, Retrying, RunSpec, Settled, Started, Usage
from tests.agents.conversation import Conversation
from tests.support import clients
from tests.support.git import git, make_repository

pytestmark = [pytest.mark.real, pytest.mark.parametrize("kind", clients.KINDS)]

DONE = Settled("done")


class World:
    """A tree, a home and a model for one client."""

    def __init__(self, kind: str, folder: Path) -> None:
        clients.command(kind)
        self.kind = kind
        self.model: Any = None
        self.tree = make_repository(folder / "tree")
        self.home = folder / "home"
        self.home.mkdir()
        self.spec: RunSpec
        self.talks: list[Conversation] = []

    def play(self, *turns: dict[str, Any]) -> None:
        """Starts the model, and prepares the client for it."""
        self.model = clients.model(list(turns)).start()
        program, env = clients.prepare(self.kind, self.home, self.model.url)
        mark = {orphans.VARIABLE: orphans.new_mark("test"), "GITTASKS_TASK": "000042"}
        folder, log = str(self.home.parent), str(self.home.parent / "agent.log")
        self.spec = RunSpec(program, str(self.tree), folder, {**env, **mark}, log)

    def talk(self, session: str | None = None) -> Conversation:
        """Starts the client."""
        talk = Conversation(self.spec._replace(session=session))
        self.talks.append(talk)
        return talk

    def marked(self) -> list[int]:
        """Returns the processes that the client has started, and itself."""
        return orphans.marked(self.spec.env[orphans.VARIABLE])

    def begin(self, talk: Conversation) -> None:
        """Has it begin a command that does not end."""
        talk.run.prompt("Wait for it.")
        talk.until((self.tree / "begun").exists)
        talk.told += talk.run.events()


@pytest.fixture
def world(kind: str, tmp_path: Path) -> Iterator[World]:
    made = World(kind, tmp_path)
    yield made
    for talk in made.talks:
        talk.run.kill()
    if made.model is not None:
        made.model.stop()


ENDLESS = {"run": "touch begun; while true; do python3 -c 'import time; time.sleep(1)'; done"}


def settled(told: list[Any]) -> list[Settled]:
    return [event for event in told if isinstance(event, Settled)]


def test_it_is_there(world: World) -> None:
    world.play()
    found = ADAPTERS[world.kind].probe(world.spec.program, world.spec.env)
    assert (found.problems, found.version[:1].isdigit(), found.resume) == ((), True, True)


def test_a_turn_runs_a_command_and_is_done(world: World) -> None:
    world.play({"run": "echo $GITTASKS_TASK >task; pwd >>task"}, {"text": "Done."})
    talk = world.talk()
    told = talk.turn("Do the work.")
    talk.run.close()
    told += talk.ended()
    (began, over) = (event for event in told if isinstance(event, Activity) and event.tool)
    assert (settled(told), over.is_over, world.marked()) == ([DONE], True, [])
    assert began.target.startswith("echo $GITTASKS_TASK")
    assert (world.tree / "task").read_text() == f"000042\n{world.tree}\n"
    assert next(event for event in told if isinstance(event, Started)).session == talk.run.session
    usage = [event for event in told if isinstance(event, Usage)][-1]
    assert usage.tokens > usage.output > 0
    assert (usage.cost > 0) == (world.kind != "codex")


def test_a_refused_key_is_an_error_and_the_next_prompt_is_taken(world: World) -> None:
    tries = {"pi": 1, "claude": 2, "codex": 2}[world.kind]
    world.play({"error": 401, "message": "bad key", "repeat": tries}, {"text": "Done."})
    talk = world.talk()
    failed = settled(talk.turn("Do the work."))[0]
    assert (failed.outcome, failed.is_retryable, "401" in failed.error) == ("error", True, True)
    assert settled(talk.turn("Do the work.")) == [DONE]


def test_it_tries_again_by_itself_when_it_asked_too_often(world: World) -> None:
    world.play({"error": 429, "retry_after": 1}, {"text": "Done."})
    told = world.talk().turn("Do the work.")
    retried = next(event for event in told if isinstance(event, Retrying))
    assert (settled(told), retried.attempt, "429" in retried.reason) == ([DONE], 1, True)


def test_a_provider_that_goes_on_to_refuse_is_a_limit(world: World) -> None:
    world.play({"error": 429, "message": "Rate limit reached", "repeat": 0})
    assert settled(world.talk().turn("Do the work."))[0].outcome == "limit"


def test_an_answer_that_is_too_long_is_told(world: World) -> None:
    world.play({"text": "Once upon", "stop": "length", "repeat": 0})
    assert settled(world.talk().turn("Tell a story."))[0].outcome == "length"


def test_a_request_that_is_wrong_is_not_worth_another_try(world: World) -> None:
    world.play({"error": 400, "message": "prompt is too long: 9 tokens", "repeat": 0})
    failed = settled(world.talk().turn("Do the work."))[0]
    assert (failed.outcome, failed.is_retryable) == ("error", False)


def test_a_command_that_runs_is_broken_off_and_the_session_goes_on(world: World) -> None:
    world.play(ENDLESS, {"text": "Done."})
    talk = world.talk()
    world.begin(talk)
    talk.run.interrupt()
    assert settled(talk.until_told(Settled)) == [Settled("aborted")]
    assert settled(talk.turn("Do something else.")) == [DONE]
    talk.run.close()
    talk.ended()
    assert world.marked() == []
    assert "Wait for it." in json.dumps(world.model.requests[-1]["body"])


def test_killing_leaves_nothing(world: World) -> None:
    world.play(ENDLESS)
    talk = world.talk()
    world.begin(talk)
    before = len(world.marked())
    talk.run.kill()
    told = talk.ended()
    assert (before > 1, world.marked(), told[-1]) == (True, [], Exited(-9))


def test_another_process_goes_on_with_the_session(world: World) -> None:
    world.play(ENDLESS, {"text": "Done."}, {"text": "Done."})
    first = world.talk()
    world.begin(first)
    first.run.kill()
    first.ended()
    second = world.talk(first.run.session)
    known = second.run.session
    told = second.turn("Go on.")
    told += second.turn("And on.")
    assert (settled(told), known) == ([DONE, DONE], first.run.session)
    asked = json.dumps(world.model.requests[-1]["body"])
    assert all(words in asked for words in ("Wait for it.", "Go on.", "And on."))


def test_words_reach_it_while_a_turn_goes_on(world: World) -> None:
    command = "touch begun; while [ ! -e go ]; do python3 -c 'import time; time.sleep(.1)'; done"
    world.play({"run": command}, {"text": "Done."})
    talk = world.talk()
    world.begin(talk)
    heard = talk.run.steer("Use the other file.")
    time.sleep(0.3)
    (world.tree / "go").touch()
    told = talk.until_told(Settled)
    assert (settled(told), heard) == ([DONE], world.kind != "codex")
    asked = "Use the other file." in json.dumps(world.model.requests[-1]["body"])
    assert asked == heard


def test_nothing_of_a_tree_is_run_though_its_repository_is_trusted(world: World) -> None:
    world.play({"text": "Done."})
    main = world.tree
    if world.kind == "codex":
        with (world.home / ".codex" / "config.toml").open("a") as settings:
            settings.write(f'[projects."{main}"]\ntrust_level = "trusted"\n')
    tree = main.parent / "linked"
    git(main, "worktree", "add", "-q", str(tree))
    trap = f"touch {main}/trap"
    server = {"command": "sh", "args": ["-c", trap]}
    hook = {"hooks": [{"type": "command", "command": trap}]}
    for name, text in {
        ".mcp.json": json.dumps({"mcpServers": {"x": server}}),
        ".pi/mcp.json": json.dumps({"mcpServers": {"x": server}}),
        ".pi/extensions/x.ts": f"import {{execSync}} from 'child_process'; execSync({trap!r});",
        ".claude/settings.json": json.dumps({"hooks": {"SessionStart": [hook]}}),
        ".codex/config.toml": f'[mcp_servers.x]\ncommand = "sh"\nargs = ["-c", "{trap}"]\n',
    }.items():
        path = tree / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    world.spec = world.spec._replace(tree=str(tree))
    talk = world.talk()
    told = talk.turn("Do the work.")
    talk.run.close()
    talk.ended()
    assert (settled(told), os.path.exists(main / "trap")) == ([DONE], False)

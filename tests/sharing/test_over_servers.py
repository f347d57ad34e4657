"""Two clones and a server that they really have: smart HTTP and ssh, started here on loopback.

The common part of sharing is proved over file paths; here is what a wire adds: a server that is
not there, falls silent, loses its answer, refuses, or asks what nobody can type.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from gittasks.domain.events import Event, Submitted
from tests.cases.ground import error_of
from tests.sharing.ground import LEDGER, Clone, Shared, linear
from tests.support.cli import COMMAND, environment, tasks_inprocess, tasks_process
from tests.support.git import git
from tests.support.hooks import forged, tool
from tests.support.ledgers import open_ledger
from tests.support.remotes import clone, install_hook
from tests.support.servers import (
    LOOPBACK,
    HttpServer,
    SshServer,
    closed_port,
    needs_sshd,
    serve_http,
    serve_ssh,
    silent_port,
)

BRANCH = "refs/heads/task/000001"

# What the tool gives a remote that has all the time it wants, and how late we may look.
PATIENCE = 5.0
SLACK = 4.0


class Over(NamedTuple):
    """A project that Ada and Bob share over a server."""

    shared: Shared
    server: HttpServer | SshServer

    @property
    def ada(self) -> Clone:
        """Returns the clone of Ada."""
        return self.shared.ada

    @property
    def bob(self) -> Clone:
        """Returns the clone of Bob."""
        return self.shared.bob

    @property
    def remote(self) -> Path:
        """Returns the bare repository behind the server."""
        return self.shared.remote

    @property
    def web(self) -> HttpServer:
        """Returns the server, which speaks HTTP."""
        assert isinstance(self.server, HttpServer)
        return self.server

    @property
    def shell(self) -> SshServer:
        """Returns the server, which speaks ssh."""
        assert isinstance(self.server, SshServer)
        return self.server

    def move(self, address: str) -> None:
        """Tells both clones another address."""
        for one in (self.ada, self.bob):
            one.git("remote", "set-url", "origin", address)

    def hurry(self, seconds: str = "1s") -> None:
        """Lets both clones wait only so long for git."""
        for one in (self.ada, self.bob):
            one.git("config", "gittasks.gitTimeout", seconds)

    @contextmanager
    def going_away(self) -> Iterator[None]:
        """Lets the repository be stored into once, without a word, and then be gone for a while."""
        gone = self.remote.with_name("gone.git")
        hook = install_hook(self.remote, "post-receive", f"mv {self.remote} {gone}; kill -9 $PPID")
        yield
        gone.rename(self.remote)
        hook.unlink()

    def refuse_pushes(self) -> None:
        """Lets the server be read only."""
        if isinstance(self.server, HttpServer):
            self.server.read_only = True
        else:
            self.server.refuse_pushes()

    def falls_silent(self) -> None:
        """Lets the server take what is asked and answer nothing."""
        if isinstance(self.server, HttpServer):
            self.server.silent = True
        else:
            self.server.stall()


def _over(shared: Shared, server: HttpServer | SshServer) -> Over:
    over = Over(shared, server)
    over.move(server.url(shared.remote))
    return over


@contextmanager
def _serving(scheme: str, shared: Shared, folder: Path) -> Iterator[Over]:
    if scheme == "http":
        with serve_http(shared.remote.parent) as web:
            yield _over(shared, web)
    else:
        with serve_ssh(folder / "ssh") as shell:
            yield _over(shared, shell)


@pytest.fixture(params=["http", pytest.param("ssh", marks=needs_sshd)])
def over(request: pytest.FixtureRequest, shared: Shared, tmp_path: Path) -> Iterator[Over]:
    """Shares over each kind of server."""
    with _serving(request.param, shared, tmp_path) as over:
        yield over


@pytest.fixture
def http(shared: Shared) -> Iterator[Over]:
    """Shares over HTTP."""
    with serve_http(shared.remote.parent) as web:
        yield _over(shared, web)


@pytest.fixture
def locked(shared: Shared) -> Iterator[Over]:
    """Shares over HTTP with those who know the password."""
    with serve_http(shared.remote.parent, "s3cret") as web:
        yield _over(shared, web)


@pytest.fixture
def ssh(shared: Shared, tmp_path: Path) -> Iterator[Over]:
    """Shares over ssh."""
    with serve_ssh(tmp_path / "ssh") as shell:
        yield _over(shared, shell)


def on_branches(over: Over) -> list[str]:
    """Returns the names of the remote's branches."""
    return git(over.remote, "for-each-ref", "--format=%(refname)", "refs/heads/").splitlines()


# --------------------------------------------------------------------------- work that is shared


def test_what_both_wrote_apart_is_replayed_and_both_have_it(over: Over) -> None:
    task = over.ada.new("One")
    over.bob.manager("pull")
    over.ada.offline("note", task, "of Ada")
    over.bob.offline("note", task, "of Bob")
    over.ada.offline("new", "Two of Ada")
    over.bob.offline("new", "Two of Bob")
    assert over.ada.manager("push").out == "origin: 2 events published\n"
    assert over.bob.sync().out == (
        "origin: 2 events received, 3 events published, 000002 is now 000003\n"
    )
    over.ada.manager("note", task, "at once")
    assert over.ada.tip() == over.shared.tip, "what is written is published without being asked"
    over.shared.met()
    assert over.shared.kinds(task) == ["create", "submit", "note", "note", "note"]
    assert linear(over.remote)


def test_of_two_who_claim_at_once_one_gets_the_task(over: Over) -> None:
    task = over.shared.ready("One")
    env = {"GITTASKS_AGENT": "pi"}
    running = [
        tasks_process(one.folder, "claim", task, "--json", env=env) for one in (over.ada, over.bob)
    ]
    ended = [(*each.communicate(timeout=60), each.returncode) for each in running]
    assert sorted(status for _, _, status in ended) == [0, 6], ended
    (won,) = [json.loads(out)["data"] for out, _, status in ended if not status]
    over.shared.met()
    assert {over.ada.show(task)["claim"], over.bob.show(task)["claim"]} == {won["claim"]}
    assert over.shared.kinds(task) == ["create", "submit", "claim"]


def test_work_of_one_clone_is_reviewed_in_the_second_and_landed_from_a_third(
    over: Over, home: Path
) -> None:
    task = over.ada.new("One")
    tree = over.ada.work(task, {"new.txt": "new\n"})
    work = over.ada.git("rev-parse", "HEAD", at=tree)
    assert git(over.remote, "rev-parse", BRANCH) == work
    over.bob.approve(task)
    assert over.bob.git("rev-parse", BRANCH) == work
    third = Clone(clone(over.server.url(over.remote), home / "cid", "Cid"))
    third.manager("init", "--remote", "origin")
    third.manager("submit", task)
    assert git(over.remote, "show", "master:new.txt") == "new"
    assert on_branches(over) == [LEDGER, "refs/heads/master"]
    over.shared.met()
    shown = over.ada.show(task)
    assert (shown["state"], shown["outcome"]) == ("CLOSED", "landed")
    kinds = ["create", "submit", "claim", "submit", "pass", "claim", "submit", "submit"]
    assert over.shared.kinds(task) == kinds


# ------------------------------------------------------------------------------ a hook that guards


@pytest.mark.parametrize("scheme", ["http", pytest.param("ssh", marks=needs_sshd)])
def test_the_hook_of_the_server_refuses_an_illegal_event_in_its_words(
    shared: Shared, home: Path, tmp_path: Path, scheme: str
) -> None:
    # The server has to find the tool, so it is there first.
    os.environ["PATH"] = tool(home)
    tasks_inprocess(shared.remote, "setup", "hooks", "--server")
    with _serving(scheme, shared, tmp_path) as over:
        task = over.shared.ready("One", "--idle")
        over.bob.manager("note", task, "legal")
        tip = over.shared.tip
        assert tip == over.bob.tip()
        forged_by(over.bob, task)
        refused = error_of(over.bob.manager("push", "--json", check=8))
        claimed = over.bob.manager("new", "Two", "--json", check=8)
    assert refused["name"] == "SYNC"
    assert f"({task}) is no valid event: " in refused["message"]
    assert error_of(claimed)["message"] == refused["message"]
    assert over.shared.tip == tip


def forged_by(one: Clone, task: str) -> None:
    """Writes into a clone what no command would: that a task nobody has worked on is handed in."""
    event = Event(
        event_id="f" * 32,
        at=1_900_000_000,
        actor="mallory",
        role="worker",
        host="test",
        change=Submitted(),
        task=task,
        uid=one.show(task)["uid"],
        source="NEW",
        target="CHECK",
        commit="c" * 40,
    )
    ledger = open_ledger(one.folder)
    tip = forged(ledger, event)
    ledger.close()
    one.git("update-ref", "refs/gittasks/backup", tip)


# ---------------------------------------------------------------------- answers that do not arrive


def test_a_server_that_dies_after_storing_is_asked_again_and_has_it(over: Over) -> None:
    task = over.shared.ready("One")
    hook = install_hook(over.remote, "post-receive", "kill -9 $PPID")
    over.bob.offline("note", task, "once")
    assert over.bob.sync().out == "origin: one event published\n"
    over.bob.start(task)
    hook.unlink()
    over.shared.met()
    assert over.ada.show(task)["claimed_by"] == "wim"
    assert over.shared.kinds(task) == ["create", "submit", "note", "claim"]


def test_an_answer_that_is_lost_is_asked_for_again(http: Over) -> None:
    task = http.shared.ready("One")
    http.web.loses_answers = True
    http.bob.agent("wim", "claim", task)
    http.web.loses_answers = False
    http.shared.met()
    assert http.shared.kinds(task) == ["create", "submit", "claim"]


def test_a_claim_that_was_stored_unheard_is_confirmed_by_the_next_command(over: Over) -> None:
    task = over.shared.ready("One")
    with over.going_away():
        lost = over.bob.agent("wim", "claim", task, "--json", check=75)
    assert "Whether it has the events is not known." in error_of(lost)["message"]
    claimed = over.bob.agent("wim", "claim", task, "--json").json()["data"]
    over.shared.met()
    assert over.ada.show(task)["claim"] == claimed["claim"]
    assert over.shared.kinds(task) == ["create", "submit", "claim"]


def test_events_that_were_stored_unheard_are_not_told_twice(over: Over) -> None:
    task = over.shared.ready("One")
    over.bob.offline("note", task, "once")
    with over.going_away():
        over.bob.sync(check=75)
    assert over.shared.tip == over.bob.tip()
    assert over.bob.sync().out == "origin: nothing to do\n"
    assert over.shared.kinds(task) == ["create", "submit", "note"]


# ----------------------------------------------------------------------------- servers that refuse


def test_a_server_that_only_reads_refuses_a_claim_and_keeps_no_event_from_being_written(
    over: Over,
) -> None:
    task = over.shared.ready("One")
    over.refuse_pushes()
    refused = over.shared.unchanged_by(
        lambda: over.bob.agent("wim", "claim", task, "--json", check=8)
    )
    assert error_of(refused)["name"] == "SYNC"
    written = over.bob.manager("note", task, "kept")
    assert written.err.startswith("Not published yet: The remote origin refused ")
    assert over.bob.manager("pull").status == 0
    assert error_of(over.bob.sync("--json", check=8))["name"] == "SYNC"


@needs_sshd
def test_a_server_that_lets_nobody_write_says_why(ssh: Over) -> None:
    ssh.shell.refuse_pushes()
    said = ssh.bob.manager("new", "One", check=8)
    assert "This key has been marked as read only." in said.err


# ------------------------------------------------------------------------- what nobody can type


@pytest.fixture(
    params=[
        pytest.param(
            name, marks=needs_sshd if name in ("key", "unknown host", "other host") else ()
        )
        for name in ("no password", "wrong password", "key", "unknown host", "other host")
    ]
)
def asked(request: pytest.FixtureRequest, shared: Shared, tmp_path: Path) -> Iterator[Over]:
    """Shares with a server that wants what nobody can type, or shows a key that nobody knows."""
    if "password" in request.param:
        with serve_http(shared.remote.parent, "s3cret") as web:
            over = _over(shared, web)
            if request.param == "wrong password":
                over.move(web.url(shared.remote, "ada:wr0ng@"))
            yield over
        return
    with serve_ssh(tmp_path / "ssh") as shell:
        if request.param == "key":
            shell.let_in(anybody=False)
        else:
            shell.know("" if request.param == "unknown host" else "user")
        yield _over(shared, shell)


def test_what_nobody_can_type_is_not_asked_for(asked: Over, tmp_path: Path) -> None:
    program = tmp_path / "asks"
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/was-asked\nsleep 30\n')
    program.chmod(0o755)
    env = {
        "DISPLAY": ":0",
        "GIT_ASKPASS": str(program),
        "SSH_ASKPASS": str(program),
        "SSH_ASKPASS_REQUIRE": "force",
        "GIT_TERMINAL_PROMPT": None,
    }
    before = asked.shared.everything()
    started = time.monotonic()
    status, shown = at_a_terminal(asked.bob.folder, "new", "One", env=env)
    assert (status, time.monotonic() - started < 20) == (8, True), shown
    first, second = shown.splitlines()
    assert first.startswith(
        "error: The remote origin wants to know who asks, and nobody can type an answer"
    )
    assert second == "hint: Store the password or the key where git finds it without asking."
    assert ("wr0ng" in shown, (tmp_path / "was-asked").exists()) == (False, False)
    assert asked.shared.everything() == before


def test_what_nobody_can_type_keeps_no_event_from_being_written(asked: Over) -> None:
    written = asked.bob.manager("config", "landing", "squash")
    assert written.err.startswith(
        "Not published yet: The remote origin wants to know who asks, and nobody can"
    )
    assert asked.bob.manager("config", "landing").out == "squash\n"
    assert error_of(asked.bob.sync("--json", check=8))["name"] == "SYNC"


def at_a_terminal(folder: Path, *args: str, env: Mapping[str, str | None]) -> tuple[int, str]:
    """Runs the command with somebody at a terminal who never types; returns what was shown."""
    ours, theirs = pty.openpty()
    script = 'exec "$@" < "$0" > "$0" 2>&1'
    running = subprocess.Popen(
        ["sh", "-c", script, os.ttyname(theirs), *COMMAND, *args],
        cwd=folder,
        env=environment(env),
        stdin=subprocess.DEVNULL,
        # The first terminal that a new session opens is the one that it can be asked at.
        start_new_session=True,
    )
    try:
        status = running.wait(timeout=60)
    finally:
        running.kill()
        running.wait()
        os.close(theirs)
    shown = b""
    with suppress(OSError):
        while chunk := os.read(ours, 1 << 16):
            shown += chunk
    os.close(ours)
    return status, shown.decode().replace("\r\n", "\n")


def test_a_helper_that_has_the_password_lets_us_in(locked: Over, tmp_path: Path) -> None:
    stored = tmp_path / "stored"
    stored.write_text(f"http://ada:s3cret@{LOOPBACK}:{locked.web.port}\n", encoding="utf-8")
    for one in (locked.ada, locked.bob):
        one.git("config", "credential.helper", f"store --file={stored}")
    task = locked.shared.ready("One")
    locked.bob.start(task)
    locked.shared.met()
    assert locked.shared.kinds(task) == ["create", "submit", "claim"]


def test_a_helper_that_hangs_does_not_keep_us(locked: Over, tmp_path: Path) -> None:
    locked.hurry()
    locked.bob.git("config", "credential.helper", f"!echo $$ > {tmp_path}/pid; sleep 30 #")
    started = time.monotonic()
    locked.bob.sync(check=75)
    assert time.monotonic() - started < 1 + SLACK
    pid = int((tmp_path / "pid").read_text())
    # Who was killed is gone a moment later.
    while is_alive(pid) and time.monotonic() - started < 1 + SLACK:
        time.sleep(0.05)
    assert not is_alive(pid)


def is_alive(pid: int) -> bool:
    """Tells whether a process runs."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


# ------------------------------------------------------------------------- servers out of reach


def test_a_server_that_says_nothing_is_left_when_the_time_is_over(over: Over) -> None:
    task = over.shared.ready("One")
    over.hurry()
    over.falls_silent()
    started = time.monotonic()
    refused = over.shared.unchanged_by(
        lambda: over.bob.agent("w", "claim", task, "--json", check=75)
    )
    assert time.monotonic() - started < 1 + SLACK
    error = error_of(refused)
    assert (error["name"], error["retryable"]) == ("TEMP", True)
    assert error["message"].endswith("The remote origin did not answer within 1 seconds.")


def test_what_was_written_is_told_before_a_silent_server_is_asked(over: Over) -> None:
    task = over.shared.ready("One")
    over.falls_silent()
    started = time.monotonic()
    with tasks_process(over.bob.folder, "note", task, "kept", "--json") as running:
        assert running.stdout is not None
        first = json.loads(running.stdout.readline())
        ends_later = running.poll() is None
        _, said = running.communicate(timeout=60)
        took = time.monotonic() - started
    assert (first["data"]["id"], running.returncode, ends_later) == (task, 0, True)
    waiting, _, said = said.partition("\n")
    assert waiting == "Waiting for the remote origin…"
    assert said.startswith("Not published yet: ")
    assert took < PATIENCE + SLACK


@pytest.mark.parametrize(
    ("words", "said"),
    [((), "Waiting for the remote origin…\n"), pytest.param(("-q",), "", marks=pytest.mark.slow)],
)
def test_whoever_waits_for_a_slow_server_is_told_so_once(
    http: Over, words: tuple[str, ...], said: str
) -> None:
    http.shared.ready("One")
    http.web.delay = 3.2
    result = http.bob.sync("--json", *words)
    assert (result.json()["data"]["pending"], result.err) == (0, said)


def test_nobody_is_told_of_a_server_that_answers_in_time(http: Over) -> None:
    http.shared.ready("One")
    http.web.delay = 0.5
    assert http.bob.sync("--json").err == ""


@pytest.mark.parametrize("scheme", ["http", pytest.param("ssh", marks=needs_sshd)])
def test_a_port_where_nobody_listens_can_be_tried_again_later(shared: Shared, scheme: str) -> None:
    task = shared.ready("One")
    with silent_port():
        address = f"{scheme}://{LOOPBACK}:{closed_port()}/remote.git"
        shared.bob.git("remote", "set-url", "origin", address)
        refused = shared.unchanged_by(
            lambda: shared.bob.agent("wim", "start", task, "--json", check=75)
        )
        written = shared.bob.manager("note", task, "kept")
        shared.bob.sync(check=75)
    assert error_of(refused)["retryable"] is True
    assert written.err.startswith("Not published yet: The remote origin ")
    shared.bob.git("remote", "set-url", "origin", str(shared.remote))
    assert shared.bob.sync().out == "origin: one event published\n"


# ------------------------------------------------------------------------------ the user's own way


@needs_sshd
@pytest.mark.parametrize("setting", ["GIT_SSH_COMMAND", "core.sshCommand"])
def test_the_users_own_ssh_is_used(
    ssh: Over, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    if setting == "GIT_SSH_COMMAND":
        monkeypatch.setenv(setting, f"{ssh.shell.client} -q")
    else:
        ssh.ada.git("config", setting, f"{ssh.shell.client} -q")
    before = len(ssh.shell.asked)
    ssh.ada.new("One")
    ways = {tuple(line.split(" ")[:2]) for line in ssh.shell.asked[before:]}
    assert ways == {("own", "-q")}
    assert ssh.ada.tip() == ssh.shared.tip


def test_addresses_that_git_rewrites_are_rewritten(http: Over) -> None:
    server = f"http://{LOOPBACK}:{http.web.port}/"
    nowhere = f"http://{LOOPBACK}:{closed_port()}/"
    for one in (http.ada, http.bob):
        one.git("config", f"url.{server}.insteadOf", "work:")
        one.git("config", f"url.{server}.pushInsteadOf", nowhere)
    http.move("work:remote.git")
    task = http.shared.ready("One")
    http.bob.git("remote", "set-url", "origin", f"{nowhere}remote.git")
    http.bob.git("config", f"url.{server}remote.git.insteadOf", f"{nowhere}remote.git")
    http.bob.start(task)
    http.shared.met()
    assert http.shared.kinds(task) == ["create", "submit", "claim"]


@pytest.mark.parametrize("setting", ["http.proxy", "remote.origin.proxy", "http_proxy"])
def test_a_proxy_is_asked(http: Over, monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    proxy = f"http://{LOOPBACK}:{http.web.port}"
    if setting == "http_proxy":
        monkeypatch.setenv(setting, proxy)
    else:
        http.ada.git("config", setting, proxy)
    http.ada.git("remote", "set-url", "origin", "http://tasks.invalid/remote.git")
    before = len(http.web.requests)
    http.ada.new("One")
    asked = {path.partition("remote.git")[0] for _, path in http.web.requests[before:]}
    assert asked == {"http://tasks.invalid/"}
    assert http.ada.tip() == http.shared.tip

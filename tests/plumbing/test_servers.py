"""The same over servers that clones really use: smart HTTP and ssh, started here on loopback."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gittasks.plumbing import remote
from gittasks.plumbing.errors import RemoteAsks, RemoteRaced, RemoteRefused, RemoteUnreachable
from gittasks.plumbing.remote import Update
from gittasks.plumbing.repository import Repository
from tests.support.git import git
from tests.support.remotes import clone, commit, install_hook, two_clones
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

LEDGER = "refs/heads/gittasks/ledger"
OURS = "refs/gittasks/remotes/origin/ledger"
TASK = "refs/heads/task/000001"


class Served:
    """A bare remote that Bob reaches by its path, and Ada over a server."""

    def __init__(self, folder: Path, server: HttpServer | SshServer) -> None:
        self.server = server
        self.remote, self.ada, self.bob = two_clones(folder)
        self.move(server.url(self.remote))

    def move(self, address: str) -> None:
        """Tells Ada another address."""
        git(self.ada, "remote", "set-url", "origin", address)

    def open(self) -> Repository:
        """Returns the repository of Ada."""
        return Repository.open(str(self.ada))

    def theirs(self, ref: str = LEDGER, text: str = "theirs") -> str:
        """Lets Bob push a commit."""
        made = commit(self.bob, ref, text)
        git(self.bob, "push", "-q", "origin", f"{ref}:{ref}")
        return made

    def mine(self, text: str = "mine") -> str:
        """Makes a commit of Ada."""
        return commit(self.ada, "refs/heads/mine", text)

    def has(self, ref: str) -> str:
        """Returns what the remote has by now."""
        return git(self.remote, "for-each-ref", "--format=%(objectname)", ref)


def _http(folder: Path, password: str | None = None) -> Iterator[Served]:
    with serve_http(folder, password) as server:
        yield Served(folder, server)


def _ssh(folder: Path) -> Iterator[Served]:
    with serve_ssh(folder / "ssh") as server:
        yield Served(folder, server)


@pytest.fixture(params=["http", pytest.param("ssh", marks=needs_sshd)])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    yield from _http(tmp_path) if request.param == "http" else _ssh(tmp_path)


@pytest.fixture
def http(tmp_path: Path) -> Iterator[Served]:
    yield from _http(tmp_path)


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Served]:
    """Serves over HTTP to those who know the password."""
    yield from _http(tmp_path, "s3cret")


@pytest.fixture
def ssh(tmp_path: Path) -> Iterator[Served]:
    yield from _ssh(tmp_path)


def web(served: Served) -> HttpServer:
    assert isinstance(served.server, HttpServer)
    return served.server


def shell(served: Served) -> SshServer:
    assert isinstance(served.server, SshServer)
    return served.server


# --------------------------------------------------------------------- over both alike


def test_refs_are_listed_fetched_pushed_and_deleted(served: Served) -> None:
    made, repo = served.theirs(), served.open()
    assert remote.head(repo, "origin") == "refs/heads/master"
    assert remote.listed(repo, "origin", [LEDGER, TASK]) == {LEDGER: made}
    assert remote.fetch(repo, "origin", {LEDGER: OURS, TASK: OURS + "x"}, whole=True) == {TASK}
    mine = commit(served.ada, OURS, "mine")
    updates = [Update(LEDGER, mine, made, plain=True), Update(TASK, made, None)]
    remote.push(repo, "origin", updates)
    remote.push(repo, "origin", [Update("refs/gittasks/a", mine, None), Update(TASK, None, made)])
    assert [served.has(ref) for ref in (LEDGER, TASK, "refs/gittasks/a")] == [mine, "", mine]


def test_a_race_is_told_from_a_refusal(served: Served) -> None:
    served.theirs()
    mine, repo = served.mine(), served.open()
    updates = [Update(LEDGER, mine, None, plain=True), Update(TASK, mine, None)]
    with pytest.raises(RemoteRaced) as raced:
        remote.push(repo, "origin", updates)
    install_hook(served.remote, "update", "echo 'Not on Friday.' >&2; exit 1")
    with pytest.raises(RemoteRefused) as refused:
        remote.push(repo, "origin", updates[1:])
    assert (raced.value.names, refused.value.names, refused.value.words) == (
        (LEDGER,),
        (TASK,),
        "Not on Friday.",
    )


def test_a_ref_that_moves_while_the_push_arrives_is_a_race(served: Served) -> None:
    root = git(served.remote, "rev-parse", "master")
    script = f"unset GIT_QUARANTINE_PATH; git update-ref {LEDGER} {root}"
    install_hook(served.remote, "pre-receive", script)
    mine = served.mine()
    with pytest.raises(RemoteRaced) as raced:
        remote.push(served.open(), "origin", [Update(LEDGER, mine, None), Update(TASK, mine, None)])
    assert raced.value.names == (LEDGER,)


@pytest.mark.parametrize("moment", ["pre-receive", "post-receive"])
def test_a_server_that_dies_may_have_taken_the_push(served: Served, moment: str) -> None:
    hook = install_hook(served.remote, moment, "kill -9 $PPID")
    mine, repo = served.mine(), served.open()
    with pytest.raises(RemoteUnreachable) as caught:
        remote.push(repo, "origin", [Update(LEDGER, mine, None)])
    taken = mine if moment == "post-receive" else ""
    assert (caught.value.maybe_done, served.has(LEDGER)) == (True, taken)
    hook.unlink()
    remote.push(repo, "origin", [Update(LEDGER, mine, None)])
    assert served.has(LEDGER) == mine


def test_a_repository_that_is_not_there_cannot_be_reached(served: Served) -> None:
    served.move(f"{served.server.url(served.remote)}-gone")
    mine, repo = served.mine(), served.open()
    calls: list[Callable[[], object]] = [
        lambda: remote.push(repo, "origin", [Update(LEDGER, mine, None)]),
        lambda: remote.fetch(repo, "origin", {LEDGER: OURS}),
    ]
    for call in calls:
        with pytest.raises(RemoteUnreachable) as caught:
            call()
        assert (caught.value.maybe_done, "remote.git-gone" in str(caught.value)) == (False, True)


def test_a_shallow_and_partial_clone_gets_our_history_in_full(
    served: Served, tmp_path: Path
) -> None:
    git(served.remote, "config", "uploadpack.allowFilter", "true")
    made = [served.theirs(text=f"event {at}") for at in range(4)]
    options = ("--depth=1", "--no-single-branch", "--filter=blob:none")
    path = clone(served.server.url(served.remote), tmp_path / "cy", "Cy", *options)
    remote.fetch(Repository.open(str(path)), "origin", {LEDGER: OURS}, whole=True)
    served.remote.rename(tmp_path / "gone")
    assert [git(path, "show", f"{oid}:file.txt") for oid in made] == [
        f"event {at}" for at in range(4)
    ]


@pytest.mark.parametrize("scheme", ["http", pytest.param("ssh", marks=needs_sshd)])
def test_a_port_where_nobody_listens_cannot_be_reached(tmp_path: Path, scheme: str) -> None:
    with silent_port():
        _, ada, _ = two_clones(tmp_path)
        git(ada, "remote", "set-url", "origin", f"{scheme}://{LOOPBACK}:{closed_port()}/r.git")
        mine = commit(ada, "refs/heads/mine", "mine")
        with pytest.raises(RemoteUnreachable) as caught:
            remote.push(Repository.open(str(ada)), "origin", [Update(LEDGER, mine, None)])
    assert (caught.value.maybe_done, caught.value.timed_out) == (False, False)


@pytest.mark.parametrize("scheme", ["http", pytest.param("ssh", marks=needs_sshd)])
def test_a_port_that_says_nothing_is_left_when_the_time_is_over(
    tmp_path: Path, scheme: str
) -> None:
    with silent_port() as port:
        _, ada, _ = two_clones(tmp_path)
        git(ada, "remote", "set-url", "origin", f"{scheme}://{LOOPBACK}:{port}/r.git")
        started = time.monotonic()
        with pytest.raises(RemoteUnreachable, match=r"did not answer within 0\.5 seconds"):
            remote.fetch(Repository.open(str(ada)), "origin", {LEDGER: OURS}, timeout=0.5)
    assert time.monotonic() - started < 10
    assert _speaking_to(str(port)) == []


def _speaking_to(word: str) -> list[str]:
    """Returns the programs started with a word that do not end; one that was killed takes a moment."""
    deadline = time.monotonic() + 5
    while (found := _running(word)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def _running(word: str) -> list[str]:
    """Returns the programs, other than this one, that were started with a word."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdecimal() and int(entry) != os.getpid():
            try:
                line = Path(f"/proc/{entry}/cmdline").read_bytes()
            except OSError:
                continue
            if word.encode() in line:
                found.append(line.decode("utf-8", "replace"))
    return found


# ------------------------------------------------------------------------------- over HTTP


def test_a_large_push_comes_in_pieces_and_a_long_question_packed(http: Served) -> None:
    text = os.urandom(1_500_000).hex()
    mine, repo = http.mine(text), http.open()
    remote.push(repo, "origin", [Update(LEDGER, mine, None)])
    for at in range(40):
        commit(http.ada, "refs/heads/long", str(at))
    http.theirs(TASK)
    remote.fetch(repo, "origin", {TASK: OURS})
    ways = [(one.get("transfer-encoding"), one.get("content-encoding")) for one in web(http).bodies]
    assert http.has(LEDGER) == mine
    assert (("chunked", None) in ways, (None, "gzip") in ways) == (True, True)


def test_an_answer_that_is_lost_leaves_a_push_that_may_have_arrived(http: Served) -> None:
    mine, repo = http.mine(), http.open()
    web(http).loses_answers = True
    with pytest.raises(RemoteUnreachable) as caught:
        remote.push(repo, "origin", [Update(LEDGER, mine, None)])
    assert (caught.value.maybe_done, http.has(LEDGER)) == (True, mine)


def test_a_server_that_hangs_is_left_when_the_time_is_over(http: Served) -> None:
    mine, repo = http.mine(), http.open()
    web(http).silent = True
    with pytest.raises(RemoteUnreachable) as caught:
        remote.push(repo, "origin", [Update(LEDGER, mine, None)], timeout=0.5)
    assert (caught.value.timed_out, caught.value.maybe_done) == (True, True)


def test_a_server_that_only_reads_refuses_a_push(http: Served) -> None:
    mine, repo = http.mine(), http.open()
    web(http).read_only = True
    assert remote.listed(repo, "origin", [LEDGER]) == {}
    with pytest.raises(RemoteRefused, match=r"refused refs/heads/gittasks/ledger: .*403"):
        remote.push(repo, "origin", [Update(LEDGER, mine, None)])


@pytest.mark.parametrize("login", ["", "ada:wr0ng@"])
def test_a_password_that_nobody_types_is_not_waited_for(locked: Served, login: str) -> None:
    locked.move(web(locked).url(locked.remote, login))
    mine, repo = locked.mine(), locked.open()
    calls: list[Callable[[], object]] = [
        lambda: remote.push(repo, "origin", [Update(LEDGER, mine, None)]),
        lambda: remote.fetch(repo, "origin", {LEDGER: OURS}),
        lambda: remote.head(repo, "origin"),
    ]
    for call in calls:
        with pytest.raises(RemoteAsks) as caught:
            call()
        assert ("wr0ng" in str(caught.value), caught.value.remote) == (False, "origin")


def test_a_helper_that_knows_the_password_lets_us_in(locked: Served, tmp_path: Path) -> None:
    stored = tmp_path / "stored"
    stored.write_text(f"http://ada:s3cret@{LOOPBACK}:{web(locked).port}\n", encoding="utf-8")
    git(locked.ada, "config", "credential.helper", f"store --file={stored}")
    mine, repo = locked.mine(), locked.open()
    remote.push(repo, "origin", [Update(LEDGER, mine, None)])
    assert remote.listed(repo, "origin", [LEDGER]) == {LEDGER: mine}


@pytest.mark.parametrize("name", ["core.askPass", "credential.helper"])
def test_a_program_that_would_ask_somebody_does_not_keep_us(
    locked: Served, tmp_path: Path, name: str
) -> None:
    program = tmp_path / "asks"
    program.write_text("#!/bin/sh\n[ $GCM_INTERACTIVE = never ] || sleep 60\n", encoding="utf-8")
    program.chmod(0o755)
    git(locked.ada, "config", name, str(program))
    started = time.monotonic()
    with pytest.raises(RemoteAsks):
        remote.fetch(locked.open(), "origin", {LEDGER: OURS}, timeout=20)
    assert time.monotonic() - started < 10


def test_a_transaction_that_a_hook_stops_tells_nothing_over_http(http: Served) -> None:
    install_hook(http.remote, "reference-transaction", _STOPS)
    mine, repo = http.mine(), http.open()
    with pytest.raises(RemoteUnreachable) as caught:
        remote.push(repo, "origin", [Update(TASK, mine, None)])
    assert caught.value.maybe_done is True


_STOPS = '[ "$1" != prepared ] || { echo No. >&2; exit 1; }'


# -------------------------------------------------------------------------------- over ssh


@needs_sshd
def test_a_transaction_that_a_hook_stops_is_refused_in_its_words(ssh: Served) -> None:
    install_hook(ssh.remote, "reference-transaction", _STOPS)
    with pytest.raises(RemoteRefused) as refused:
        remote.push(ssh.open(), "origin", [Update(TASK, ssh.mine(), None)])
    assert (refused.value.names, refused.value.words) == ((TASK,), "No.")


@needs_sshd
def test_ssh_may_not_ask_unless_the_user_has_an_own_command(
    ssh: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = shell(ssh).client
    repo = ssh.open()
    remote.head(repo, "origin")
    git(ssh.ada, "config", "core.sshCommand", f"{own} -v")
    remote.head(ssh.open(), "origin")
    monkeypatch.setenv("GIT_SSH", own)
    remote.head(ssh.open(), "origin")
    git(ssh.ada, "config", "--unset", "core.sshCommand")
    remote.head(ssh.open(), "origin")
    monkeypatch.setenv("GIT_SSH_COMMAND", f"{own} -q")
    remote.head(ssh.open(), "origin")
    asked = [line.split(" ")[:2] for line in shell(ssh).asked]
    port = f"{shell(ssh).port}"
    assert [" ".join(words).replace(port, "port") for words in asked] == [
        "bin -oBatchMode=yes",
        "own -v",
        "own -v",
        "own -o",
        "own -q",
    ]


@needs_sshd
@pytest.mark.parametrize("own", [False, True], ids=["our ssh", "the user's ssh"])
@pytest.mark.parametrize("wrong", ["key", "unknown host", "other host"])
def test_what_ssh_would_ask_is_not_waited_for(ssh: Served, wrong: str, *, own: bool) -> None:
    server = shell(ssh)
    if own:
        git(ssh.ada, "config", "core.sshCommand", server.client)
    if wrong == "key":
        server.let_in(anybody=False)
    else:
        server.know("" if wrong == "unknown host" else "user")
    mine, repo = ssh.mine(), ssh.open()
    started = time.monotonic()
    with pytest.raises(RemoteAsks) as caught:
        remote.push(repo, "origin", [Update(LEDGER, mine, None)], timeout=20)
    assert time.monotonic() - started < 15
    assert ("Permission denied" in str(caught.value)) is (wrong == "key")


@needs_sshd
def test_a_host_that_stalls_is_left_and_its_processes_end(ssh: Served) -> None:
    server = shell(ssh)
    server.stall()
    mine, repo = ssh.mine(), ssh.open()
    with pytest.raises(RemoteUnreachable) as caught:
        remote.push(repo, "origin", [Update(LEDGER, mine, None)], timeout=1)
    assert (caught.value.timed_out, caught.value.maybe_done) == (True, True)
    assert _speaking_to(f"{server.port}") == []


@needs_sshd
def test_a_connection_that_stays_open_for_the_next_does_not_keep_us(
    ssh: Served, tmp_path: Path
) -> None:
    shared = f"-oControlMaster=auto -oControlPersist=5 -oControlPath={tmp_path}/c"
    git(ssh.ada, "config", "core.sshCommand", f"{shell(ssh).client} {shared}")
    started = time.monotonic()
    remote.head(ssh.open(), "origin")
    assert time.monotonic() - started < 10


@needs_sshd
def test_a_server_leaves_nothing_behind(tmp_path: Path) -> None:
    with serve_ssh(tmp_path / "ssh") as server:
        _, ada, _ = two_clones(tmp_path)
        git(ada, "remote", "set-url", "origin", server.url(tmp_path / "remote.git"))
        server.stall()
        with pytest.raises(RemoteUnreachable):
            remote.head(Repository.open(str(ada)), "origin", timeout=1)
        before = server.running()
    assert (len(before), server.running(), _speaking_to(f"{tmp_path}/")) == (1, [], [])
    assert os.environ["GIT_ALLOW_PROTOCOL"] == "file"

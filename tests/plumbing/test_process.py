"""Processes are bounded in time, leave nothing behind and cannot block us."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from gittasks.plumbing.errors import GitError, GitTimeout
from gittasks.plumbing.process import Child, Completed, run
from gittasks.plumbing.repository import GIT
from tests.support.git import git, make_repository

SH = "/bin/sh"
ENV = {"PATH": os.defpath}


def _sh(script: str, *args: str, stdin: bytes = b"", timeout: float = 20) -> Completed:
    return run([SH, "-c", script, "sh", *args], stdin=stdin, env=ENV, timeout=timeout)


def _gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def _wait_until_gone(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while not _gone(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_status_and_both_outputs_come_back() -> None:
    done = _sh("printf out; printf err >&2; exit 3")
    assert done == Completed(3, b"out", b"err")


def test_a_process_killed_by_a_signal_has_a_negative_status() -> None:
    assert _sh("kill -TERM $$").status == -15


def test_the_arguments_arrive_byte_for_byte() -> None:
    words = ["with space", "line\nend", "\udcff", ""]
    assert _sh('printf "%s\\0" "$@"', *words).stdout == b"with space\0line\nend\0\xff\0\0"


def test_megabytes_pass_both_ways_at_once() -> None:
    data = os.urandom(3_000_000)
    assert run(["/bin/cat"], stdin=data, env=ENV, timeout=20).stdout == data


def test_input_that_nobody_reads_is_no_error() -> None:
    assert _sh("exit 0", stdin=b"x" * 1_000_000) == Completed(0, b"", b"")


def test_without_input_a_process_reads_nothing_of_ours() -> None:
    assert run(["/bin/cat"], env=ENV, timeout=20) == Completed(0, b"", b"")


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(GitError, match=r"^/nowhere/git cannot be started: No such file"):
        run(["/nowhere/git"], env=ENV, timeout=1)


def test_the_time_limit_kills_the_whole_group(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    started = time.monotonic()
    with pytest.raises(GitTimeout, match=r"did not end within 0.3 seconds"):
        _sh(f"sleep 60 & echo $! $$ >'{pids}'; sleep 60", timeout=0.3)
    told = [int(pid) for pid in pids.read_text(encoding="ascii").split()]
    assert (len(told), all(map(_wait_until_gone, told))) == (2, True)
    assert time.monotonic() - started < 10


def test_a_process_that_closed_its_outputs_is_still_bounded() -> None:
    with pytest.raises(GitTimeout):
        _sh("exec >&- 2>&-; sleep 60", timeout=0.3)


def test_a_process_that_ignores_the_polite_signal_is_killed() -> None:
    with pytest.raises(GitTimeout):
        _sh("trap '' TERM INT HUP; sleep 60", timeout=0.3)


def test_git_takes_its_lock_files_along_when_its_time_is_over(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r")
    hook = folder / ".git/hooks/reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\necho $1 >>'{tmp_path}/called'; sleep 60\n", encoding="utf-8")
    hook.chmod(0o755)
    head = git(folder, "rev-parse", "HEAD")
    command = [GIT, "-C", str(folder), "update-ref", "refs/heads/new", head]
    with pytest.raises(GitTimeout):
        run(command, env=dict(os.environ), timeout=1)
    assert ((tmp_path / "called").exists(), [*folder.rglob("*.lock")]) == (True, [])


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux tells of the end at once")
def test_a_grandchild_that_keeps_the_outputs_open_is_not_waited_for() -> None:
    started = time.monotonic()
    assert _sh("sleep 20 & echo said").stdout == b"said\n"
    assert time.monotonic() - started < 10


def test_a_process_has_a_session_of_its_own() -> None:
    done = run(
        [sys.executable, "-c", "import os; print(os.getsid(0) == os.getpid())"],
        env=ENV,
        timeout=20,
    )
    assert done.stdout == b"True\n"


def test_a_broken_pipe_ends_a_process_as_it_does_in_a_shell() -> None:
    # Python ignores this signal; a child that inherits that prints errors instead of ending.
    assert _sh("yes | head -n 1; kill -PIPE $$").status == -13


def test_no_descriptor_is_left_open() -> None:
    before = os.listdir("/proc/self/fd")
    for script in ("exit 0", "exit 1", "sleep 5"):
        try:
            _sh(script, stdin=b"x", timeout=0.2)
        except GitTimeout:
            pass
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_no_descriptor_of_ours_reaches_a_child(tmp_path: Path) -> None:
    with (tmp_path / "secret").open("wb"):
        ours = [int(fd) for fd in os.listdir("/proc/self/fd")]
        inherited = {fd for fd in ours if fd > 2 and _is_inheritable(fd)}
        seen = run(["/bin/ls", "/proc/self/fd"], stdin=b"x", env=ENV, timeout=20).stdout
    # The one more is the folder that `ls` itself reads.
    assert len({int(fd) for fd in seen.split()} - inherited - {0, 1, 2}) == 1


def _is_inheritable(fd: int) -> bool:
    try:
        return os.get_inheritable(fd)
    except OSError:
        return False


_WITHOUT_STREAMS = """
import os
for fd in (0, 1, 2):
    os.close(fd)
from gittasks.plumbing.process import run
done = run(["/bin/sh", "-c", "cat; echo err >&2"], stdin=b"in", env={"PATH": "/bin:/usr/bin"},
           timeout=10)
with open(os.environ["RESULT"], "w") as file:
    file.write(repr(tuple(done)))
"""


def test_a_process_is_run_even_when_our_own_streams_are_closed(tmp_path: Path) -> None:
    result = tmp_path / "result"
    checkout = str(Path(__file__).resolve().parents[2])
    env = {**ENV, "PYTHONPATH": checkout, "RESULT": str(result)}
    run([sys.executable, "-c", _WITHOUT_STREAMS], env=env, timeout=20)
    assert result.read_text(encoding="ascii") == "(0, b'in', b'err\\n')"


def test_a_conversation_reads_lines_and_counted_bytes() -> None:
    child = Child(["/bin/cat"], env=ENV, timeout=20)
    child.write(b"first\nsecond line\nabcdef")
    told = (child.read_line(), child.read_line(), child.read_exactly(4))
    rest = child.close()
    assert (*told, rest) == (b"first", b"second line", b"abcd", Completed(0, b"ef", b""))


def test_a_conversation_does_not_block_when_the_answer_is_larger_than_a_pipe() -> None:
    child = Child(["/bin/cat"], env=ENV, timeout=20)
    data = b"x" * 2_000_000 + b"\n"
    child.write(data)
    line = child.read_line()
    child.close()
    assert len(line) == 2_000_000


def test_a_conversation_partner_that_says_nothing_is_stopped() -> None:
    child = Child([SH, "-c", "sleep 60"], env=ENV, timeout=0.3)
    with pytest.raises(GitTimeout):
        child.read_line()
    assert child.status == -15


def test_a_conversation_partner_that_reads_nothing_is_stopped() -> None:
    child = Child([SH, "-c", "sleep 60"], env=ENV, timeout=0.3)
    with pytest.raises(GitTimeout):
        child.write(b"x" * 1_000_000)
    assert child.status == -15


def test_a_conversation_that_breaks_off_tells_the_last_words() -> None:
    child = Child([SH, "-c", "echo 'fatal: no luck' >&2; exit 7"], env=ENV, timeout=20)
    with pytest.raises(GitError, match=r"^no luck\.$") as caught:
        child.read_exactly(1)
    child.kill()
    assert caught.value.status == 7


def test_a_line_that_is_cut_off_by_the_end_comes_as_it_is() -> None:
    child = Child([SH, "-c", "printf half"], env=ENV, timeout=20)
    lines = (child.read_line(), child.read_line())
    child.close()
    assert lines == (b"half", b"")


def test_a_chatty_error_stream_does_not_block_a_conversation() -> None:
    script = "i=0; while [ $i -lt 4000 ]; do echo 0123456789012345678901234567890123456789 >&2;"
    child = Child([SH, "-c", f"{script} i=$((i+1)); done; echo done"], env=ENV, timeout=20)
    line = child.read_line()
    child.close()
    assert line == b"done"

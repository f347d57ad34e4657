"""Commands that run in a task's tree."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from gittasks.domain.events import CheckResult
from gittasks.workspaces import checks


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "the tree"
    folder.mkdir()
    return folder


def run(tree: Path, *commands: str, limit: float = 20, **more: object) -> checks.Run:
    return checks.run(commands, str(tree), str(tree.parent / "logs"), limit=limit, **more)  # type: ignore[arg-type]


def runs(pid: int) -> bool:
    """Tells whether a process still does something; a killed one may take a moment."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return False
        except FileNotFoundError:
            return False
        time.sleep(0.02)
    return True


def pid_in(path: Path) -> int:
    return int(path.read_text())


def sha(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def test_all_commands_run_also_after_one_has_failed(tree: Path) -> None:
    done = run(tree, "echo one; exit 3", "touch here", "kill -9 $$")
    assert done.results == (
        CheckResult("echo one; exit 3", 3, sha(b"one\n")),
        CheckResult("touch here", 0, sha(b"")),
        CheckResult("kill -9 $$", 137, sha(b"")),
    )
    assert (tree / "here").exists()


def test_no_commands_pass(tree: Path) -> None:
    assert run(tree).has_passed


def test_findings_name_the_failed_commands_without_their_output(tree: Path) -> None:
    done = run(tree, "true", "echo secret >&2; exit 1")
    command = "echo secret >&2; exit 1"
    digest = sha(b"secret\n")
    assert done.findings == (
        f"The check `{command}` failed: exit code 1 (output sha256 {digest}).",
    )


def test_the_report_shows_the_output_of_what_failed(tree: Path) -> None:
    done = run(tree, "echo fine", "echo out; echo err >&2; exit 1", "false")
    assert done.report == (
        "`echo fine`: passed\n"
        "`echo out; echo err >&2; exit 1`: exit code 1\n    out\n    err\n"
        "`false`: exit code 1"
    )


def test_both_outputs_are_kept_in_the_order_they_were_written(tree: Path) -> None:
    done = run(tree, "echo 1; echo 2 >&2; echo 3; echo 4 >&2")
    assert Path(done.outcomes[0].log).read_text() == "1\n2\n3\n4\n"


def test_the_tail_is_the_last_forty_lines(tree: Path) -> None:
    done = run(tree, "seq 100")
    assert done.outcomes[0].tail == "\n".join(map(str, range(61, 101)))


def test_what_moves_a_cursor_or_is_no_text_is_spelled_out(tree: Path) -> None:
    done = run(tree, r"printf 'a\033[31mb\r\n10%%\r99%%\n\377\tz\n'")
    assert done.outcomes[0].tail == "a\\x1b[31mb\n99%\n\\xff\tz"


def test_a_command_that_never_ends_is_stopped_with_all_it_started(tree: Path) -> None:
    started = time.monotonic()
    command = "sleep 600 & echo $! > child; echo waiting; wait"
    done = run(tree, command, "true", limit=1)
    assert time.monotonic() - started < 5
    assert done.results == (
        CheckResult(command, 124, sha(b"waiting\n"), 1, timed_out=True),
        CheckResult("true", 0, sha(b"")),
    )
    assert done.outcomes[0].words == "timed out after 1 s"
    assert not runs(pid_in(tree / "child"))


def test_a_command_that_will_not_be_asked_to_end_is_killed(tree: Path) -> None:
    command = "trap '' TERM; echo $$ > own; while :; do sleep 0.1; done"
    done = run(tree, command, limit=0.5)
    assert done.results[0].timed_out
    assert not runs(pid_in(tree / "own"))


@pytest.mark.parametrize("start", ["sleep 600 &", "setsid sleep 600 &"])
def test_nothing_is_left_behind_by_a_command_that_ended(tree: Path, start: str) -> None:
    done = run(tree, f"{start} echo $! > child; sleep 0.1")
    assert done.has_passed
    assert not runs(pid_in(tree / "child"))


def test_a_run_that_is_stopped_records_nothing_for_the_command_it_was_at(tree: Path) -> None:
    done = run(tree, "true", "sleep 600", "true", stop=lambda: True)
    assert (done.stopped, done.has_passed, len(done.outcomes)) == (True, False, 1)


def test_a_check_sees_no_repository_and_no_claim_of_ours(tree: Path) -> None:
    environ = {
        "PATH": os.environ["PATH"],
        "GIT_DIR": "/nowhere",
        "GIT_INDEX_FILE": "/nowhere",
        "GITTASKS_CLAIM": "secret",
        "LC_ALL": "C.UTF-8",
        "EDITOR": "vi",
        "HOME": "/home/ada",
    }
    done = run(tree, "env | grep -E '^(GIT|EDITOR|LC_|HOME)' | sort", environ=environ)
    lines = done.outcomes[0].tail.splitlines()
    assert [line for line in lines if not line.startswith("GITTASKS_CHECK=")] == [
        "EDITOR=true",
        "GIT_ASKPASS=true",
        "GIT_EDITOR=true",
        "GIT_MERGE_AUTOEDIT=no",
        "GIT_PAGER=cat",
        "GIT_SEQUENCE_EDITOR=true",
        "GIT_TERMINAL_PROMPT=0",
        "HOME=/home/ada",
        "LC_ALL=C.UTF-8",
    ]


def test_a_check_runs_at_the_top_of_the_tree_and_reads_nothing(tree: Path) -> None:
    done = run(tree, "pwd; cat; echo end")
    assert done.outcomes[0].tail == f"{tree}\nend"


def test_a_log_is_for_its_owner_only(tree: Path) -> None:
    os.umask(0)
    log = run(tree, "true").outcomes[0].log
    assert os.stat(log).st_mode & 0o777 == 0o600


def test_a_tree_that_is_not_there_fails_the_check(tree: Path) -> None:
    done = checks.run(("true",), str(tree / "gone"), str(tree.parent / "logs"), limit=5)
    assert not done.has_passed

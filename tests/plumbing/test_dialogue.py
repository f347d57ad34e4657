"""A process is spoken to line by line and never waited for."""

from __future__ import annotations

import os
import signal
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gittasks.plumbing.dialogue import Dialogue
from gittasks.plumbing.errors import ProgramMissing
from gittasks.plumbing.processes import process_identity

ENV = {"PATH": os.defpath}
MIB = 1 << 20


class Talk:
    """A dialogue with a shell script, and what was heard of it so far."""

    def __init__(self, tmp_path: Path, script: str, *, takes_input: bool = True) -> None:
        self.log = tmp_path / "logs" / "agent.log"
        argv = ("sh", "-c", script)
        self.dialogue = Dialogue(
            argv, cwd=str(tmp_path), env=ENV, log=str(self.log), takes_input=takes_input
        )
        self.heard: list[bytes] = []

    def until(self, is_enough: Callable[[], bool]) -> None:
        """Listens until something is so."""
        deadline = time.monotonic() + 20
        while not is_enough():
            assert time.monotonic() < deadline, self.heard[-3:]
            self.heard += self.dialogue.lines()
            time.sleep(0.002)

    def to_the_end(self) -> int:
        """Listens until the process has ended; returns its exit code."""
        self.until(lambda: self.dialogue.code() is not None)
        code = self.dialogue.code()
        assert code is not None
        return code


def test_lines_come_whole_and_the_last_one_also_without_an_end(tmp_path: Path) -> None:
    talk = Talk(tmp_path, "printf 'one\\r\\n\\ntw'; sleep 0.05; printf 'o\\nrest'; exit 3")
    assert (talk.to_the_end(), talk.heard) == (3, [b"one\r", b"", b"two", b"rest"])


def test_both_outputs_are_in_a_log_that_only_we_can_read(tmp_path: Path) -> None:
    talk = Talk(tmp_path, "echo said; sleep 0.05; echo cried >&2; sleep 0.05; printf end")
    talk.to_the_end()
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (talk.log, talk.log.parent)]
    assert (talk.log.read_bytes(), modes) == (b"said\ncried\nend\n", [0o600, 0o700])


def test_more_than_a_pipe_holds_is_written_while_lines_are_read(tmp_path: Path) -> None:
    talk = Talk(tmp_path, "exec cat")
    line = b"x" * (3 * MIB)
    talk.dialogue.write(line + b"\n")
    talk.dialogue.write(b"and more\n")
    talk.dialogue.close_input()
    assert (talk.to_the_end(), talk.heard == [line, b"and more"]) == (0, True)


def test_input_that_nobody_reads_is_no_error(tmp_path: Path) -> None:
    talk = Talk(tmp_path, "exec <&-; echo deaf; sleep 0.05")
    talk.until(lambda: bool(talk.heard))
    talk.dialogue.write(b"x" * MIB)
    assert talk.to_the_end() == 0


def test_without_input_a_process_reads_nothing(tmp_path: Path) -> None:
    talk = Talk(tmp_path, "cat", takes_input=False)
    talk.dialogue.write(b"nobody hears this\n")
    assert (talk.to_the_end(), talk.heard) == (0, [])


def test_a_signal_reaches_the_whole_group_and_gives_a_negative_code(tmp_path: Path) -> None:
    talk = Talk(tmp_path, "sleep 60 & echo $!; wait; exit 1")
    talk.until(lambda: bool(talk.heard))
    talk.dialogue.signal(signal.SIGKILL)
    talk.until(lambda: not talk.dialogue.is_alive())
    assert (talk.to_the_end(), process_identity(int(talk.heard[0]))) == (-9, None)


def test_a_grandchild_that_keeps_the_pipes_open_does_not_hide_the_end(tmp_path: Path) -> None:
    talk = Talk(tmp_path, "sleep 60 & echo $!; exit 4")
    assert (talk.to_the_end(), talk.dialogue.is_alive()) == (4, True)
    talk.dialogue.signal(signal.SIGKILL)
    talk.until(lambda: not talk.dialogue.is_alive())


def test_there_is_no_code_while_lines_are_untold(tmp_path: Path) -> None:
    talk = Talk(tmp_path, "echo last")
    deadline = time.monotonic() + 20
    while talk.dialogue.is_alive() and time.monotonic() < deadline:
        time.sleep(0.002)
    before = talk.dialogue.code()
    assert (before, talk.dialogue.lines(), talk.dialogue.code()) == (None, [b"last"], 0)


def test_a_line_that_never_ends_is_cut_and_the_next_one_is_whole(tmp_path: Path) -> None:
    talk = Talk(tmp_path, "head -c 9000000 /dev/zero; echo; echo next")
    talk.to_the_end()
    assert talk.heard == [bytes(4 * MIB) + b" (cut: the line is too long)", b"next"]


def test_a_log_that_has_grown_begins_anew(tmp_path: Path) -> None:
    talk = Talk(tmp_path, "head -c 3000000 /dev/zero; echo; read go; echo new")
    talk.log.parent.mkdir()
    with talk.log.open("wb") as file:
        file.truncate(7 * MIB)
    talk.until(lambda: bool(talk.heard))
    talk.dialogue.write(b"go\n")
    talk.to_the_end()
    sizes = [path.stat().st_size for path in (Path(f"{talk.log}.1"), talk.log)]
    assert sizes == [7 * MIB + 3_000_001, len(b"new\n")]


def test_a_log_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    talk = Talk(tmp_path, "echo said")
    talk.log.parent.mkdir()
    talk.log.symlink_to("/dev/full")
    assert (talk.to_the_end(), talk.heard) == (0, [b"said"])


def test_the_end_of_standard_error_moves_no_cursor(tmp_path: Path) -> None:
    script = r"seq 50 >&2; printf '\033[31mred\377\t\n\nlast' >&2"
    talk = Talk(tmp_path, script)
    talk.to_the_end()
    shown = "\n".join([*map(str, range(44, 51)), "\\x1b[31mred\ufffd", "last"])
    assert talk.dialogue.error_tail() == shown
    assert talk.dialogue.error_lines()[-2:] == [b"", b"last"]


@pytest.mark.parametrize(
    ("argv", "folder", "words"),
    [
        (("agent",), ".", "The program agent cannot be started: No such file or directory."),
        (
            ("sh",),
            "nowhere",
            "The program sh cannot be started: nowhere: No such file or directory.",
        ),
        (("sh", "a\0b"), ".", "The program sh cannot be started: embedded null byte."),
        ((), ".", "There is no program to start."),
    ],
)
def test_a_program_that_cannot_be_started_is_named(
    tmp_path: Path, argv: tuple[str, ...], folder: str, words: str
) -> None:
    os.chdir(tmp_path)
    with pytest.raises(ProgramMissing) as raised:
        Dialogue(argv, cwd=folder, env=ENV, log=str(tmp_path / "log"))
    assert str(raised.value) == words


def test_a_process_that_nobody_holds_any_more_is_killed(tmp_path: Path) -> None:
    dialogue = Dialogue(("sleep", "60"), cwd=str(tmp_path), env=ENV, log=str(tmp_path / "log"))
    pid = dialogue.pid
    del dialogue
    assert process_identity(pid) is None

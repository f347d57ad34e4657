"""The process that plays a plan: `python -m gittasks.agents.script_player PLAN FOLDER [SESSION]`.

It reads one JSON object a line, `{"prompt": TEXT}`, `{"steer": TEXT}` or `{"interrupt": true}`, and
writes one a line: `event` names the event, the other keys are its fields. What it was told is
written too, so it is in the log. After the end of its input it plays its turn to the end. How many
turns were played stands below `agent/` in the task's folder.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from typing import Any, NoReturn

from gittasks.agents import script
from gittasks.plumbing.dialogue import Dialogue
from gittasks.plumbing.errors import ProgramMissing

_PAUSE = 0.01
_SIGKILL = 9
_SIGTERM = 15

_STATES = {"designer": "DESIGN", "planner": "PLAN", "worker": "WORK"}


class _TurnOver(Exception):
    """A turn has ended; the event tells how."""

    def __init__(self, outcome: str, **fields: Any) -> None:
        super().__init__(outcome)
        self.fields = {"outcome": outcome, **fields}


class Player:
    """Plays the turns of one task, one for each prompt."""

    def __init__(self, plan: dict[str, Any], folder: str, session: str) -> None:
        self._plan = plan
        self._folder = folder
        self._session = session or f"scripted-{os.urandom(8).hex()}"
        self._task = os.environ.get("GITTASKS_TASK", "")
        self._input = b""
        self._prompts: list[str] = []
        self._steers: list[str] = []
        self._is_playing = False
        self._is_interrupted = False
        self._is_over = False

    def play(self) -> None:
        """Plays until its input ends."""
        _tell("started", session=self._session)
        while True:
            while not self._prompts:
                if self._is_over:
                    return
                self._listen(None)
            self._prompts.pop(0)
            self._is_playing = True
            try:
                self._play_turn()
            except _TurnOver as over:
                _tell("settled", **over.fields)
            else:
                _tell("settled", outcome="done")
            self._is_playing = self._is_interrupted = False

    def _play_turn(self) -> None:
        state = self._state()
        for step in script.turn(self._plan, self._task, state, self._count(state)):
            self._wait(0)
            ((name, value),) = step.items()
            getattr(self, f"_step_{name}")(value)

    def _state(self) -> str:
        role = os.environ.get("GITTASKS_ROLE", "")
        if role in _STATES:
            return _STATES[role]
        # A reviewer's role does not tell what it reviews.
        _, said = self._play_program(["git", "tasks", "show", "--json"], is_silent=True)
        try:
            return str(json.loads(b"\n".join(said))["data"]["state"])
        except (ValueError, KeyError, TypeError):
            return ""

    def _count(self, state: str) -> int:
        """Returns how many turns were played for this task in this state, and counts one more."""
        path = os.path.join(self._folder, "agent", "scripted.json")
        try:
            with open(path, "rb") as file:
                counts = json.loads(file.read())
        except (OSError, ValueError):
            counts = {}
        number = int(counts.get(state, 0))
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(path + ".part", "w", encoding="utf-8") as file:
            json.dump({**counts, state: number + 1}, file)
        os.replace(path + ".part", path)
        return number

    # What is heard.

    def _listen(self, seconds: float | None) -> None:
        """Takes in what was said; waits for it, at most so many seconds."""
        if self._is_over:
            time.sleep(seconds or 0)
            return
        if not select.select([0], [], [], seconds)[0]:
            return
        said = os.read(0, 1 << 16)
        self._is_over = not said
        *lines, self._input = (self._input + said).split(b"\n")
        for line in lines:
            told = json.loads(line)
            _tell("told", **told)
            if "prompt" in told:
                self._prompts.append(told["prompt"])
            if "steer" in told:
                self._steers.append(told["steer"])
            if "interrupt" in told:
                self._is_interrupted = self._is_playing or bool(self._prompts)

    def _wait(self, seconds: float) -> None:
        """Waits so long, unless the turn is broken off."""
        end = time.monotonic() + seconds
        left = 0.0
        while left >= 0:
            self._listen(left)
            if self._is_interrupted:
                raise _TurnOver("aborted")
            left = end - time.monotonic()

    # The steps.

    def _step_write(self, file: dict[str, str]) -> None:
        path = os.path.abspath(file["path"])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as target:
            target.write(file["text"])

    def _step_append(self, text: str) -> None:
        with open(os.path.join(self._folder, "ASSIGNMENT.md"), "a", encoding="utf-8") as file:
            file.write(text.rstrip("\n") + "\n")

    def _step_commit(self, message: str) -> None:
        self._step_run(["git", "add", "--all"])
        self._step_run(["git", "commit", "-q", "-m", message])

    def _step_submit(self, how: Any) -> None:
        words = ["-m", how] if isinstance(how, str) else ["--no-change"] if how is not True else []
        self._step_run(["git", "tasks", "submit", *words])

    def _step_feedback(self, findings: list[str]) -> None:
        words = [word for finding in findings for word in ("-m", finding)]
        self._step_run(["git", "tasks", "feedback", *words])

    def _step_hold(self, reason: str) -> None:
        self._step_run(["git", "tasks", "hold", "--reason", reason])

    def _step_run(self, argv: list[str]) -> None:
        target = " ".join(argv)
        _tell("activity", tool="shell", target=target, key=json.dumps(argv))
        code, _ = self._play_program(argv)
        _tell("ran", code=code)
        _tell("activity", tool="shell", target=target, is_over=True)

    def _step_say(self, text: str) -> None:
        _tell("said", text=text)

    def _step_listen(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self._steers and time.monotonic() < end:
            self._wait(_PAUSE)
        self._steers.clear()

    def _step_sleep(self, seconds: float) -> None:
        self._wait(seconds)

    def _step_usage(self, used: dict[str, float]) -> None:
        _tell("usage", **used)

    def _step_activity(self, activity: dict[str, Any]) -> None:
        _tell("activity", **activity)

    def _step_retrying(self, retry: dict[str, Any]) -> None:
        _tell("retrying", **retry)

    def _step_compacted(self, reason: str) -> None:
        _tell("compacted", reason=reason)

    def _step_limit(self, seconds: float) -> NoReturn:
        raise _TurnOver("limit", error="The plan says so.", seconds=seconds)

    def _step_error(self, told: Any) -> NoReturn:
        if isinstance(told, str):
            raise _TurnOver("error", error=told)
        more = {"is_retryable": told["is_retryable"]} if "is_retryable" in told else {}
        raise _TurnOver(told.get("outcome", "error"), error=told.get("text", ""), **more)

    def _step_die(self, _: bool) -> NoReturn:
        os.kill(os.getpid(), _SIGKILL)
        raise SystemExit

    def _step_hang(self, how: Any) -> NoReturn:
        if how == "deaf":
            import signal

            signal.signal(_SIGTERM, signal.SIG_IGN)
            _tell("deaf")
            while True:
                time.sleep(60)
        while not self._is_over:
            self._wait(60)
        raise SystemExit

    def _play_program(self, argv: list[str], *, is_silent: bool = False) -> tuple[int, list[bytes]]:
        """Runs a program to its end, unless the turn is broken off; returns what it said."""
        try:
            program = Dialogue(
                argv, cwd=os.getcwd(), env=os.environ, log=os.devnull, takes_input=False
            )
        except ProgramMissing as error:
            _tell("output", text=str(error))
            return 127, []
        said: list[bytes] = []
        code: int | None = None
        while code is None:
            code = program.code()
            lines = [*program.lines(), *program.error_lines()]
            said += lines
            if not is_silent:
                for line in lines:
                    _tell("output", text=line.decode("utf-8", "replace"))
            if code is None:
                self._wait(_PAUSE)
        return code, said


def _tell(event: str, **fields: Any) -> None:
    line = json.dumps({"event": event, **fields}).encode() + b"\n"
    while line:
        line = line[os.write(1, line) :]


def main(argv: list[str]) -> None:
    """Plays the plan named by the arguments."""
    # It was needed to find this module, and is nothing that an agent has.
    os.environ.pop("PYTHONPATH", None)
    plan, faults = script.read(argv[1])
    if faults:
        raise SystemExit("\n".join(faults))
    try:
        Player(plan, argv[2], argv[3] if len(argv) > 3 else "").play()
    except BrokenPipeError:
        # Whoever listened is gone.
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv)

"""Everything that is printed: data on stdout, talk on stderr, nothing that could steer a terminal.

Whatever is printed for people goes through `escape`; colour is added only around escaped text.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

from gittasks.domain.errors import GittasksError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_COLOURS = {
    "red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36",
    "bold": "1", "dim": "2",
}  # fmt: skip
_PLAIN = {"…": "...", "→": "->", "\u2013": "-", "—": "-", "·": "*", "\u2019": "'"}
_DIRECTIONS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_CHUNK = 1000
_PAGER_DEFAULTS = {"LESS": "FRX", "LV": "-c"}


def escape(text: str, *, lines: bool = False) -> str:
    """Returns the text with controls, direction overrides and half characters spelled out.

    With `lines`, line ends and tabs stay; a carriage return before a line end goes.
    """
    if text.isprintable():
        return text
    import re

    if lines:
        text = text.replace("\r\n", "\n")
    kept = r"\t\n" if lines else ""
    unsafe = rf"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff{_DIRECTIONS}\ud800-\udfff]"
    return re.sub(rf"(?![{kept}]){unsafe}" if kept else unsafe, _spelled, text)


def _spelled(match: Any) -> str:
    code = ord(match[0])
    named = {9: "\\t", 10: "\\n", 13: "\\r"}.get(code)
    return named or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def width_of(text: str) -> int:
    """Returns how many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0
        if unicodedata.combining(character) or character in "\u200b\u200d\ufe0e\ufe0f"
        else 2
        if unicodedata.east_asian_width(character) in "WF"
        else 1
        for character in text
    )


def cut(text: str, width: int) -> str:
    """Returns the text shortened to a number of columns, with an ellipsis where it was cut."""
    if width_of(text) <= width:
        return text
    kept = ""
    used = 0
    for character in text:
        step = width_of(character)
        if used + step > width - 1:
            break
        kept += character
        used += step
    return kept + "…" if width > 0 else ""


def age(seconds: int) -> str:
    """Returns a duration as people say it: 40 s, 5 min, 3 h, 2 d."""
    for limit, unit, name in ((60, 1, "s"), (3600, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{max(seconds, 0) // unit} {name}"
    return f"{seconds // 86_400} d"


def seconds_of(text: str) -> int:
    """Returns the seconds since 1970 of a time such as 2026-11-30T17:17:12Z."""
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    # Years that begin in March end with the day that leap years add.
    year -= month < 3
    days = year * 365 + year // 4 - year // 100 + year // 400
    days += (153 * ((month + 9) % 12) + 2) // 5 + day - 719_469
    return days * 86_400 + int(text[11:13]) * 3600 + int(text[14:16]) * 60 + int(text[17:19])


class AnswerLost(GittasksError):
    """What was asked for is done, but the answer could not be written."""


class _answering:  # noqa: N801 - used like a function, in a `with`
    """Turns a failure to write the answer into one that says that the command is done."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            raise AnswerLost(
                "What was asked for is done, but its answer could not be written: "
                f"{error.strerror or error}.",
                "Look at it with `git tasks log` before you give the command again.",
            ) from None


class Output:
    """Where one run of the tool prints to, and how."""

    def __init__(
        self,
        *,
        json: bool = False,
        quiet: bool = False,
        verbose: bool = False,
        color: str | None = None,
        pager: bool = True,
        environ: Mapping[str, str] = os.environ,
        setting: Callable[[str], str | None] = lambda _key: None,
    ) -> None:
        """Takes what the options say; `setting` answers for the configuration of git."""
        self.json = json
        self.quiet = quiet
        self.verbose = verbose
        self._color = color
        self._pager_wanted = pager
        self._environ = environ
        self._setting = setting
        self._terminal = _is_terminal(sys.stdout)
        self._colored: bool | None = None
        self._pager = 0

    # -- what the surroundings allow

    @property
    def is_terminal(self) -> bool:
        """Tells whether a person reads stdout, directly or in the pager of git."""
        return self._terminal or self._environ.get("GIT_PAGER_IN_USE") in ("1", "true")

    @property
    def width(self) -> int | None:
        """Returns the columns of the terminal, None where nothing has to fit."""
        if not self.is_terminal:
            return None
        columns = self._environ.get("COLUMNS", "")
        if columns.isdigit() and int(columns):
            return int(columns)
        for stream in (2, 0):
            try:
                return os.get_terminal_size(stream).columns or 80
            except OSError:
                continue
        return 80

    @property
    def colored(self) -> bool:
        """Tells whether colours are wanted: the option, git's settings, then the environment."""
        if self._colored is None:
            self._colored = self._decide_colour()
        return self._colored

    def _decide_colour(self) -> bool:
        wanted = self._color if self._color not in (None, "auto") else None
        if wanted is None and self._color is None:
            configured = (self._setting("color.tasks") or self._setting("color.ui") or "").lower()
            if configured == "always":
                wanted = "always"
            elif configured in ("never", "false", "off", "no", "0"):
                wanted = "never"
        if wanted is not None:
            return wanted == "always"
        environ = self._environ
        return self.is_terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"

    def paint(self, text: str, colour: str | None) -> str:
        """Returns escaped text in a colour, or as it is where no colours are wanted."""
        if colour is None or not text or not self.colored:
            return text
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[m"

    # -- data

    def line(self, text: str = "", colour: str | None = None) -> None:
        """Prints one line of data."""
        self._write(self.paint(escape(text), colour) + "\n")

    def block(self, text: str) -> None:
        """Prints a text of several lines as it is, line ends kept."""
        shown = escape(text, lines=True)
        self._write(shown if shown.endswith("\n") or not shown else shown + "\n")

    def headed(self, head: str, text: str) -> None:
        """Prints one line that begins with an id."""
        self._write(self.paint(escape(head), "yellow") + escape(text) + "\n")

    def patch(self, text: str) -> None:
        """Prints a diff, in the colours of git where colours are wanted."""
        if not self.colored:
            self.block(text)
            return
        colours = {"+": "green", "-": "red", "@": "cyan"}
        for line in escape(text, lines=True).splitlines(keepends=True):
            bare = line.rstrip("\n")
            strong = bare.startswith(("+++", "---", "diff ", "index "))
            colour = "bold" if strong else colours.get(bare[:1])
            self._write(self.paint(bare, colour) + line[len(bare) :])

    def raw(self, data: bytes) -> None:
        """Prints bytes as they are, or escaped where a person would see them."""
        stream = sys.stdout
        if stream is None:
            return
        if self.is_terminal:
            self.block(data.decode("utf-8", "surrogateescape"))
            return
        stream.flush()
        stream.buffer.write(data)

    def rows(self, rows: Sequence[str], head: int = 0) -> None:
        """Prints many lines of data, cut to the terminal where there is one.

        The first `head` letters of each, plain ASCII, are coloured as ids are.
        """
        width = self.width
        colored = head > 0 and self.colored
        for at in range(0, len(rows), _CHUNK):
            chunk = rows[at : at + _CHUNK]
            # Whether any of them needs escaping is asked once for all.
            if not "".join(chunk).isprintable():
                chunk = [escape(row) for row in chunk]
            if width is not None:
                chunk = [cut(row, width) for row in chunk]
            if colored:
                chunk = [self.paint(row[:head], "yellow") + row[head:] for row in chunk]
            self._write("\n".join(chunk) + "\n")

    def table(
        self, rows: Sequence[Sequence[str]], colours: Sequence[str | None] = (), indent: str = ""
    ) -> None:
        """Prints rows in columns; the last one is cut to the terminal where there is one."""
        shown = [[escape(cell) for cell in row] for row in rows]
        if not shown:
            return
        last = len(shown[0]) - 1
        widths = [max(width_of(row[column]) for row in shown) for column in range(last)]
        width = self.width
        room = None if width is None else width - sum(widths) - 2 * last - len(indent)
        printed: list[str] = []
        for row in shown:
            cells = [
                self.paint(cell, colours[column] if column < len(colours) else None)
                + " " * (widths[column] - width_of(cell))
                for column, cell in enumerate(row[:-1])
            ]
            end = row[last] if room is None else cut(row[last], max(room, 10))
            cells.append(self.paint(end, colours[last] if last < len(colours) else None))
            printed.append((indent + "  ".join(cells)).rstrip() + "\n")
        self._write("".join(printed))

    def envelope(
        self, kind: str, data: Any, ledger: str | None = None, more: Mapping[str, Any] | None = None
    ) -> None:
        """Prints the one JSON document of an answer."""
        from gittasks.workflow import answers  # only programs ask for it

        self._document(answers.envelope(kind, data, ledger, more))

    def error_envelope(self, error: Mapping[str, Any], ledger: str | None = None) -> None:
        """Prints the one JSON document of a failure."""
        from gittasks.workflow import answers  # only programs ask for it

        self._document(answers.error_envelope(error, ledger))

    def json_line(self, data: Any) -> None:
        """Prints one line of a stream of JSON documents."""
        self._document(data)

    def _document(self, data: Any) -> None:
        import json

        self._write(json.dumps(data, separators=(", ", ": ")) + "\n")

    # -- talk

    def say(self, text: str) -> None:
        """Tells something on stderr, unless quiet."""
        if not self.quiet:
            self.warn(text)

    def detail(self, text: str) -> None:
        """Tells something on stderr that only the verbose want to know."""
        if self.verbose:
            self.warn(text)

    def warn(self, text: str) -> None:
        """Tells something on stderr, quiet or not."""
        stream = sys.stderr
        if stream is None:
            return
        try:
            # What was printed before comes before it, also when both streams are one file.
            if sys.stdout is not None:
                sys.stdout.flush()
            stream.write(_encodable(escape(text, lines=True) + "\n", stream))
            stream.flush()
        except (OSError, ValueError):
            pass

    # -- the stream itself

    def _write(self, text: str) -> None:
        stream = sys.stdout
        if stream is not None:
            with _answering():
                stream.write(_encodable(text, stream))

    def page(self) -> None:
        """Sends what follows through the pager of git, if a person reads it."""
        command = self._pager_command()
        if not command or self._pager:
            return
        colored = self.colored
        read, write = os.pipe()
        environ = {**_PAGER_DEFAULTS, **self._environ, "GIT_PAGER_IN_USE": "true"}
        self._pager = os.posix_spawn(
            "/bin/sh",
            ["sh", "-c", command],
            environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, read, 0)],
        )
        os.close(read)
        os.dup2(write, 1)
        os.close(write)
        self._colored = colored

    def _pager_command(self) -> str | None:
        if self.json or not self._terminal or not self._pager_wanted:
            return None
        configured = self._setting("pager.tasks")
        if (configured or "").lower() in ("false", "no", "off", "0"):
            return None
        if (configured or "").lower() in ("", "true", "yes", "on", "1"):
            configured = None
        command = (
            self._environ.get("GIT_PAGER")
            or configured
            or self._setting("core.pager")
            or self._environ.get("PAGER")
            or "less"
        )
        return None if command.strip() in ("", "cat") else command

    def flush(self) -> None:
        """Hands over what is still held back."""
        if sys.stdout is not None:
            with _answering():
                sys.stdout.flush()

    def finish(self) -> None:
        """Hands over what is still held back, and waits for the pager."""
        self.flush()
        if not self._pager:
            return
        import signal

        # The pager belongs to the person; an interrupt is meant for it.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.close(silent)
        os.waitpid(self._pager, 0)
        self._pager = 0
        signal.signal(signal.SIGINT, before)


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def _encodable(text: str, stream: TextIO) -> str:
    """Returns the text with what the stream's encoding cannot carry replaced."""
    encoding = stream.encoding or "utf-8"
    if text.isascii() or encoding.lower() in ("utf-8", "utf8"):
        return text
    for character, plain in _PLAIN.items():
        if character in text and not _carries(encoding, character):
            text = text.replace(character, plain)
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _carries(encoding: str, character: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True

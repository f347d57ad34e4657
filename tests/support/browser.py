"""Drives a headless Chromium through its debugging pipe: opens pages, asks, presses keys, looks."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--disable-extensions", "--hide-scrollbars", "--mute-audio",
    "--no-pings", "--no-default-browser-check", "--disable-default-apps",
    "--remote-debugging-pipe",
)  # fmt: skip
_KEYS = {
    "Enter": 13, "Escape": 27, "Tab": 9, "End": 35, "Home": 36,
    "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
}  # fmt: skip


class Browser:
    """One browser with one page; what went wrong on the page is noted."""

    def __init__(self, folder: Path) -> None:
        down, self._write = _far(os.pipe())
        self._read, up = _far(os.pipe())
        null = os.open(os.devnull, os.O_RDWR)
        self._pid = os.posix_spawn(
            str(PROGRAM),
            [str(PROGRAM), *_FLAGS, f"--user-data-dir={folder}", "about:blank"],
            {**os.environ, "HOME": str(folder)},
            # It listens at 3 and answers at 4.
            file_actions=[
                (os.POSIX_SPAWN_DUP2, here, there)
                for here, there in ((null, 0), (null, 1), (null, 2), (down, 3), (up, 4))
            ],
        )
        for one in (down, up, null):
            os.close(one)
        self._number = 0
        self._held = b""
        self.errors: list[str] = []
        """What the console was told of, and what was thrown."""
        self.requests: list[str] = []
        """The addresses that the page has asked for."""
        self._loaded = False
        self._session: str | None = None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(one["targetId"] for one in targets if one["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """Gives a command and returns its result."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        while True:
            answer = self._next(30)
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def open(self, url: str, width: int = 1280, height: int = 800, *, dark: bool = False) -> float:
        """Opens an address in a window of this size; returns the seconds until it was drawn."""
        self.size(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        # The same address with another fragment would not be loaded again.
        self.leave()
        begun = time.monotonic()
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")
        self.ask("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")
        return time.monotonic() - begun

    def leave(self) -> None:
        """Leaves the page and forgets what was noted of it."""
        self.call("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank'")
        self.errors, self.requests = [], []

    def size(self, width: int, height: int) -> None:
        """Makes the window this big; a narrow one is that of a telephone."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 720,
        )  # fmt: skip

    def ask(self, expression: str) -> Any:
        """Returns the value of an expression on the page."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, expression: str, seconds: float = 10) -> None:
        """Waits until an expression is true."""
        until = time.monotonic() + seconds
        while not self.ask(expression):
            assert time.monotonic() < until, f"Never true: {expression}"
            time.sleep(0.01)

    def press(self, *keys: str) -> None:
        """Presses keys, one after the other."""
        for key in keys:
            code = _KEYS.get(key, 0)
            about: dict[str, Any] = {"key": key, "code": key, "windowsVirtualKeyCode": code}
            if key == "Enter":
                about["text"] = "\r"
            self.call("Input.dispatchKeyEvent", type="keyDown", **about)
            self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def write(self, text: str) -> None:
        """Writes into the field that has the focus."""
        self.call("Input.insertText", text=text)

    def picture(self, path: Path) -> None:
        """Keeps a picture of what is seen."""
        found = self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(found["data"]))

    def close(self) -> None:
        """Ends the browser."""
        self._session = None
        try:
            self.call("Browser.close")
        except (AssertionError, OSError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._write)
        os.close(self._read)

    def _next(self, seconds: float) -> dict[str, Any]:
        while b"\0" not in self._held:
            assert select.select([self._read], [], [], seconds)[0], "The browser says nothing."
            found = os.read(self._read, 1 << 20)
            assert found, "The browser has ended."
            self._held += found
        data, _, self._held = self._held.partition(b"\0")
        answer: dict[str, Any] = json.loads(data)
        self._note(answer.get("method"), answer.get("params", {}))
        return answer

    def _note(self, method: str | None, told: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(told["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning"):
            self.errors.append(json.dumps(told["args"]))
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.errors.append(told["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])


def _far(ends: tuple[int, int]) -> tuple[int, int]:
    """Returns the ends of a pipe with numbers that nothing else needs."""
    reads, writes = (fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 10) for one in ends)
    for one in ends:
        os.close(one)
    return reads, writes


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Gives a browser whose settings are kept in a folder, and ends it."""
    found = Browser(folder)
    try:
        yield found
    finally:
        found.close()

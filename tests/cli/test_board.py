"""`git tasks board`: the file it writes, what it refuses, and the server as a process."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from gittasks.cli.board.page import page, prepared
from tests.support.boards import a_board
from tests.support.cli import tasks, tasks_inprocess, tasks_process
from tests.support.git import git, make_repository

SECRET = "AKIA" + "Q" * 16
HOSTILE = (
    "</script><script>document.title = 'lost'</script><!-- {{data}} <img src=x onerror=alert(1)>"
    "\u2028\u2029\u202e\x1b[31m\x00\ud800 & \"'"
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_repository(tmp_path_factory.mktemp("board") / "project")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.org")
    tasks_inprocess(folder, "init", "-q")
    tasks_inprocess(folder, "new", "One")
    tasks_inprocess(folder, "new", f"Look </script> \u202e at /home/mia/plan with {SECRET}")
    return folder


def data_of(text: str) -> Any:
    found = re.findall(r'<script type="application/json" id="data">(.*)</script>', text)
    assert len(found) == 1
    return json.loads(found[0])


def test_the_file_is_whole_and_names_nothing_outside(project: Path, home: Path) -> None:
    target = home / "board.html"
    done = tasks_inprocess(project, "board", "--html", str(target))
    text = target.read_text(encoding="ascii")
    data = data_of(text)
    assert (done.out, done.err) == (
        "",
        f"Wrote 2 tasks to {target}, as of {stamp(data)}.\n",
    )
    assert [task["title"] for task in data["tasks"]] == [
        "One",
        "Look </script> \\u202e at [path] with [secret]",
    ]
    assert data["ledger"] == git(project, "rev-parse", "gittasks").strip()
    named = re.findall(r"(?:src|href|action|url|import)\b\s*[=(]\s*[\"']?([^\s\"')>]*)", text)
    assert set(named) == {
        "#board",
        "#graph",
        "#timeline",
        "#inbox",
        "#numbers",
        "#content",
        "data:,",
        "#tip",
    }
    assert "innerHTML" not in text
    assert "outerHTML" not in text
    assert "insertAdjacentHTML" not in text
    assert os.listdir(home) == ["board.html"]


def stamp(data: Any) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(data["as_of"]))


def test_the_past_gives_the_same_bytes_each_time(project: Path) -> None:
    first, second = (
        tasks_inprocess(project, "board", "--html", "-", "--at", "HEAD~1") for _ in range(2)
    )
    assert (first.out, first.err) == (second.out, "")
    assert [task["title"] for task in data_of(first.out)["tasks"]] == ["One"]


def test_the_answer_in_json_says_what_was_written(project: Path) -> None:
    done = tasks_inprocess(project, "board", "--html", "../b.html", "--json")
    size = (project.parent / "b.html").stat().st_size
    told = done.json()
    assert (told["kind"], told["data"]) == (
        "board",
        {"file": "../b.html", "bytes": size, "tasks": 2, "as_of": told["data"]["as_of"]},
    )


def test_an_older_file_is_replaced_as_a_whole_also_behind_a_link(project: Path, home: Path) -> None:
    (home / "old.html").write_text("old", encoding="utf-8")
    (home / "link.html").symlink_to("old.html")
    tasks_inprocess(project, "board", "--html", str(home / "link.html"), "-q")
    assert (home / "link.html").is_symlink()
    assert data_of((home / "old.html").read_text(encoding="ascii"))["left_out"] == 0
    assert sorted(os.listdir(home)) == ["link.html", "old.html"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "The page is either written or served."),
        (("--html", "b.html", "--serve"), "The page is either written or served."),
        (("--html", "."), ". is a folder."),
        (("--html", "no/b.html"), "There is no folder for no/b.html."),
        (("--html", "b.html", "--port", "80"), "A file has no port."),
        (("--html", "-", "--json"), "Only one document fits on stdout."),
        (("--serve", "--at", "HEAD"), "What is served follows the ledger as it is now."),
    ],
)
def test_what_makes_no_sense_is_refused(
    project: Path, words: tuple[str, ...], message: str
) -> None:
    done = tasks_inprocess(project, "board", *words, check=2)
    assert message in (done.out + done.err)
    assert sorted(os.listdir(project)) == [".git", "app.txt"]


def test_nothing_that_others_wrote_is_more_than_data() -> None:
    data = a_board(3)
    for task in data["tasks"]:
        task |= {"title": HOSTILE, "labels": [HOSTILE], "holder": HOSTILE, "reason": HOSTILE}
    data["names"] = [HOSTILE] * 7
    text = page(prepared(data))
    plain = page(prepared(a_board(3)))
    assert text.isascii()
    assert {c for c in text if ord(c) < 32} == {"\n"}
    for mark in ("<script", "</script", "<!--", "<img"):
        assert text.count(mark) == plain.count(mark), mark
    assert data_of(text)["tasks"][0]["title"] == HOSTILE.replace("\u2028\u2029\u202e\x1b", "\\u2028\\u2029\\u202e\\x1b").replace("\x00\ud800", "\\x00\\ud800")  # fmt: skip


def test_only_its_own_script_and_style_may_run() -> None:
    text = page(prepared(a_board(1)))
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert [re.sub("sha256-[^']*", "sha256-…", one) for one in policy] == [
        "default-src 'none'; script-src 'sha256-…'; style-src 'sha256-…'; img-src data:;"
        " connect-src 'none'; base-uri 'none'; form-action 'none'"
    ]


class Serving:
    """The server as a process, and the address it has printed."""

    def __init__(self, folder: Path, trace: Path) -> None:
        self.process = tasks_process(folder, "board", "--serve", env={"GIT_TRACE": str(trace)})
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()

    def data(self, tag: str = "") -> tuple[int, str, Any]:
        """Returns status, tag and data of one more asking."""
        asked = urllib.request.Request(
            self.url.replace("/?", "/data?"), headers={"If-None-Match": tag}
        )
        try:
            with urllib.request.urlopen(asked, timeout=10) as answer:
                return answer.status, answer.headers["ETag"], json.load(answer)
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code, str(answer.headers["ETag"]), None


def test_what_is_served_follows_the_ledger_until_it_is_interrupted(
    project: Path, tmp_path: Path
) -> None:
    serving = Serving(project, tmp_path / "trace")
    try:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", serving.url)
        _, tag, before = serving.data()
        asked = (tmp_path / "trace").read_bytes()
        for _ in range(30):
            assert serving.data(tag) == (304, tag, None)
            time.sleep(0.04)
        # Who only looks again costs no process of git.
        assert (tmp_path / "trace").read_bytes() == asked != b""
        tasks_inprocess(project, "new", "Three")
        until = time.monotonic() + 20
        status, newer, after = serving.data(tag)
        while status == 304 and time.monotonic() < until:
            time.sleep(0.05)
            status, newer, after = serving.data(tag)
        assert (len(before["tasks"]), len(after["tasks"]), newer != tag) == (2, 3, True)
        assert after["ledger"] == git(project, "rev-parse", "gittasks").strip()
    finally:
        serving.process.send_signal(signal.SIGINT)
        out, err = serving.process.communicate(timeout=20)
    assert (serving.process.returncode, out) == (130, "")
    assert err == "Open this address in a browser. Ctrl-C ends it.\n"


def test_a_port_in_use_is_said_and_another_one_asked_for(project: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = tasks(project, "board", "--serve", "--port", str(port), check=2)
    assert done.err == (
        f"error: The port {port} cannot be used: Address already in use.\n"
        "hint: Give another --port, or none.\n"
    )

"""The server of the board: who is answered, with what, and that nobody can hold it up."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import NamedTuple

import pytest

from gittasks.cli.board.server import Answer, Limits, Server
from gittasks.domain.errors import UsageFault

TOKEN = "a-secret"
ANSWER = Answer(b"<p>page</p>", b'{"as_of":1}', '"first"')


class Said(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


@contextmanager
def serving(limits: Limits = Limits()) -> Iterator[Server]:  # noqa: B008
    server = Server(0, TOKEN, ANSWER, limits)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as found:
        yield found


def ask(
    server: Server, path: str = f"/?token={TOKEN}", method: str = "GET", **headers: str | None
) -> Said:
    """Sends one request; a header whose value is None is left out."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    given = {"Host": f"127.0.0.1:{server.port}", **named}
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in given.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    said = Said(answer.status, dict(answer.getheaders()), answer.read())
    connection.close()
    return said


def test_the_address_opens_the_page(server: Server) -> None:
    said = ask(server, server.url.removeprefix(f"http://127.0.0.1:{server.port}"))
    del said.headers["Date"]
    assert said == Said(
        200,
        {
            "Server": "git-tasks ",
            "Cache-Control": "no-store",
            "Content-Security-Policy": "frame-ancestors 'none'",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Content-Type": "text/html; charset=utf-8",
            "Content-Length": "11",
            "Connection": "close",
        },
        ANSWER.page,
    )


def test_the_data_has_a_tag_and_comes_only_to_who_has_not_got_it() -> None:
    with serving() as server:
        first = ask(server, f"/data?token={TOKEN}")
        again = ask(server, f"/data?token={TOKEN}", If_None_Match='"first"')
        server.show(Answer(b"", b'{"as_of":2}', '"second"'))
        newer = ask(server, f"/data?token={TOKEN}", If_None_Match='"first"')
    assert [(one.status, one.headers["ETag"], one.body) for one in (first, again, newer)] == [
        (200, '"first"', b'{"as_of":1}'),
        (304, '"first"', b""),
        (200, '"second"', b'{"as_of":2}'),
    ]


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", {}, 403),
        ("/?token=", {}, 403),
        ("/?token=a-secre", {}, 403),
        ("/?token=a-secret2", {}, 403),
        ("/?token=%C3%A9", {}, 403),
        ("/?token=a-secret&token=a-secret", {}, 403),
        ("/data", {}, 403),
        ("/other?token=a-secret", {}, 404),
        ("/../../etc/passwd?token=a-secret", {}, 404),
        ("/?token=a-secret", {"Host": None}, 421),
        ("/?token=a-secret", {"Host": "evil.example:{port}"}, 421),
        ("/?token=a-secret", {"Host": "127.0.0.1"}, 421),
        ("/?token=a-secret", {"Host": "127.0.0.1.evil.example:{port}"}, 421),
        ("/?token=a-secret", {"Host": "localhost:{port}"}, 200),
        ("/data?token=a-secret", {"Origin": "https://evil.example"}, 403),
        ("/data?token=a-secret", {"Origin": "null"}, 403),
        ("/data?token=a-secret", {"Origin": "https://127.0.0.1:{port}"}, 403),
        ("/data?token=a-secret", {"Origin": "http://127.0.0.1:{port}"}, 200),
        ("/data?token=a-secret", {"Sec_Fetch_Site": "cross-site"}, 403),
        ("/data?token=a-secret", {"Sec_Fetch_Site": "same-site"}, 403),
        ("/?token=a-secret", {"Sec_Fetch_Site": "cross-site"}, 200),
        ("/?token=a-secret", {"Content_Length": "5"}, 413),
        ("/?token=a-secret", {"Transfer_Encoding": "chunked"}, 413),
    ],
)
def test_only_who_has_the_secret_and_comes_from_here_is_answered(
    server: Server, path: str, headers: dict[str, str | None], status: int
) -> None:
    given = {
        name: value and value.replace("{port}", str(server.port)) for name, value in headers.items()
    }
    said = ask(server, path, "GET", **given)
    assert (said.status, said.body in (ANSWER.page, ANSWER.data)) == (status, status == 200)
    assert "Access-Control-Allow-Origin" not in said.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "MAKE"])
def test_nothing_can_be_changed(server: Server, method: str) -> None:
    said = ask(server, method=method)
    assert (said.status, said.headers["Allow"]) == (405, "GET, HEAD")


def test_the_head_of_an_answer_has_no_body(server: Server) -> None:
    said = ask(server, method="HEAD")
    assert (said.status, said.headers["Content-Length"], said.body) == (200, "11", b"")


@pytest.mark.parametrize(
    "request_",
    [b"\x16\x03\x01\r\n\r\n", b"GET\r\n\r\n", b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
     b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n"],
    ids=["tls", "no path", "long", "many headers"],
)  # fmt: skip
def test_what_is_no_request_is_refused_without_a_word_of_it(
    server: Server, request_: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(request_)
        answer = client.makefile("rb").read()
    assert answer.endswith(b"The request cannot be read.\n")
    assert ask(server).status == 200


def test_many_are_answered_at_once(server: Server) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: ask(server).status, range(64)))
    assert found == [200] * 64


def test_who_says_nothing_keeps_nobody_away_for_long() -> None:
    with serving(Limits(connections=2, idle_seconds=0.3)) as server:
        silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2)]
        time.sleep(0.1)
        with socket.create_connection(("127.0.0.1", server.port), timeout=5) as third:
            # There is no room for a third one, and it is told so at once.
            assert third.recv(1) == b""
        time.sleep(0.4)
        assert ask(server).status == 200
        for one in silent:
            one.close()


def test_who_speaks_a_letter_at_a_time_is_cut_off() -> None:
    with serving(Limits(idle_seconds=5, whole_seconds=0.3)) as server:
        client = socket.create_connection(("127.0.0.1", server.port), timeout=5)
        begun = time.monotonic()
        with pytest.raises(OSError), client:  # noqa: PT012
            while time.monotonic() - begun < 5:
                client.sendall(b"G")
                time.sleep(0.05)
        assert time.monotonic() - begun < 3


def test_it_listens_to_this_machine_only(server: Server) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"


def test_a_port_that_is_taken_is_said(server: Server) -> None:
    with pytest.raises(UsageFault, match=rf"The port {server.port} cannot be used"):
        Server(server.port, TOKEN, ANSWER)

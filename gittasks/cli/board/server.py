"""Serves the page on this machine only, to whoever has its address, and changes nothing.

The one who follows the ledger hands every new answer over; requests get the last one and never
ask git. A page of another origin cannot read it: the address has a secret in it, the host that is
asked for has to be this one, and no other origin is answered.
"""

from __future__ import annotations

import hmac
import socket
import socketserver
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from gittasks.domain.errors import UsageFault

if TYPE_CHECKING:
    from collections.abc import Callable

ADDRESS = "127.0.0.1"

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Answer(NamedTuple):
    """What is served: the page, the data of later asking, and the tag that both have."""

    page: bytes
    data: bytes
    tag: str


class Limits(NamedTuple):
    """How much one client may ask of the server."""

    connections: int = 16
    """How many requests are answered at once; one more is sent away."""
    idle_seconds: float = 5.0
    """How long a client may say nothing, or take nothing."""
    whole_seconds: float = 20.0
    """How long it may take from the first byte of a request to the last one of the answer."""


class Server(socketserver.ThreadingMixIn, HTTPServer):
    """Answers until it is closed; `show` says with what."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 32

    def __init__(
        self,
        port: int,
        token: str,
        answer: Answer,
        limits: Limits = Limits(),  # noqa: B008
    ) -> None:
        """Listens at a port of this machine, 0 for any; raises UsageFault where that is taken."""
        self.token = token
        self.answer = answer
        self.limits = limits
        self._places = threading.BoundedSemaphore(limits.connections)
        self._begun: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        try:
            super().__init__((ADDRESS, port), _Request)
        except (OSError, OverflowError) as error:
            raise UsageFault(
                f"The port {port} cannot be used: {getattr(error, 'strerror', None) or error}.",
                "Give another --port, or none.",
            ) from error
        self.port = int(self.server_address[1])

    @property
    def url(self) -> str:
        """Returns the address of the page, with the secret that opens it."""
        return f"http://{ADDRESS}:{self.port}/?token={self.token}"

    def show(self, answer: Answer) -> None:
        """Answers with this from now on."""
        self.answer = answer

    def start(self) -> None:
        """Begins to answer, beside whatever else the process does."""
        threading.Thread(target=self.serve_forever, args=(0.25,), daemon=True).start()

    def stop(self) -> None:
        """Ends all of it."""
        self.shutdown()
        self.server_close()

    # What http.server calls.

    def server_bind(self) -> None:
        """Takes the port, and asks no name service who we are."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answers in a thread of its own, if there is one left."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        with self._lock:
            self._begun[request] = time.monotonic()
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._leave(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answers, and makes room for the next one."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave(request)

    def service_actions(self) -> None:
        """Cuts off whoever has taken too long, byte by byte."""
        late = time.monotonic() - self.limits.whole_seconds
        with self._lock:
            for request in [one for one, begun in self._begun.items() if begun < late]:
                try:
                    request.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: a client that goes away is no news."""

    def _leave(self, request: socket.socket) -> None:
        with self._lock:
            if self._begun.pop(request, None) is not None:
                self._places.release()


class _Request(BaseHTTPRequestHandler):
    """One question; the connection ends with its answer."""

    server: Server
    server_version = "git-tasks"
    sys_version = ""

    def setup(self) -> None:
        """Waits for this client only so long."""
        super().setup()
        self.connection.settimeout(self.server.limits.idle_seconds)

    def __getattr__(self, name: str) -> Callable[[], None]:
        # http.server looks for a method named like that of the request.
        if name == "do_HEAD":
            return self.do_GET
        if name.startswith("do_"):
            return self._refuse_method
        raise AttributeError(name)

    def do_GET(self) -> None:
        """Answers with the page or the data, or says what is wrong."""
        status = self._objection()
        if status:
            self._send(status, "text/plain; charset=utf-8", _WORDS[status])
            return
        answer = self.server.answer
        if urlsplit(self.path).path == "/":
            self._send(200, "text/html; charset=utf-8", answer.page)
        elif self.headers.get("If-None-Match", "") == answer.tag:
            self._send(304, None, b"", tag=answer.tag)
        else:
            self._send(200, "application/json", answer.data, tag=answer.tag)

    def _objection(self) -> int:
        """Returns the status of a refusal, 0 where there is nothing to object to."""
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0] not in self._hosts():
            return 421
        own = {f"http://{host}" for host in self._hosts()}
        origins = self.headers.get_all("Origin") or []
        if any(origin not in own for origin in origins):
            return 403
        parts = urlsplit(self.path)
        site = self.headers.get("Sec-Fetch-Site", "none")
        if parts.path != "/" and site not in ("none", "same-origin"):
            return 403
        if "Transfer-Encoding" in self.headers or self.headers.get("Content-Length", "0") != "0":
            return 413
        given = parse_qs(parts.query, max_num_fields=8).get("token", [""])
        if len(given) != 1 or not hmac.compare_digest(
            given[0].encode(), self.server.token.encode()
        ):
            return 403
        return 0 if parts.path in ("/", "/data") else 404

    def _hosts(self) -> tuple[str, ...]:
        port = self.server.port
        names = (ADDRESS, "localhost")
        plain = names if port == 80 else ()
        return (*(f"{name}:{port}" for name in names), *plain)

    def _refuse_method(self) -> None:
        self._send(405, "text/plain; charset=utf-8", _WORDS[405])

    def _send(self, status: int, kind: str | None, body: bytes, *, tag: str | None = None) -> None:
        self.close_connection = True
        self.send_response(status)
        headers = dict(_HEADERS)
        if kind is not None and kind.startswith("text/html"):
            # The page names its script and style itself; what a header forbids, it cannot allow.
            headers["Content-Security-Policy"] = "frame-ancestors 'none'"
        for name, value in headers.items():
            self.send_header(name, value)
        if kind is not None:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
        if tag is not None:
            self.send_header("ETag", tag)
        if status == 405:
            self.send_header("Allow", "GET, HEAD")
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(
        self,
        code: int,
        message: str | None = None,  # noqa: ARG002 - it quotes the request
        explain: str | None = None,  # noqa: ARG002
    ) -> None:
        """Answers a request that cannot be read, without a word of it."""
        self.command = getattr(self, "command", None) or "GET"
        self.request_version = getattr(self, "request_version", None) or "HTTP/1.0"
        self._send(code, "text/plain; charset=utf-8", b"The request cannot be read.\n")

    def log_message(self, format: str, *args: Any) -> None:
        """Keeps no record: every address has the secret in it."""


_WORDS = {
    403: b"This address lacks the secret that `git tasks board --serve` has printed.\n",
    404: b"There is only the page.\n",
    405: b"This board can only be read.\n",
    413: b"A request has nothing to bring.\n",
    421: b"This is not the host you asked for.\n",
}

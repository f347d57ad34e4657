"""Serves repositories on loopback: smart HTTP by git's own CGI program, and a real sshd.

A server lives as long as its `with` block. Inside it git may speak its protocol, and nothing of
the machine's own settings is read: no proxy, no agent, no known host, no key.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

LOOPBACK = "127.0.0.1"
_SEARCHED = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
_SSHD = shutil.which("sshd", path=_SEARCHED)
_SSH = shutil.which("ssh", path=_SEARCHED)

needs_sshd = pytest.mark.skipif(
    not (_SSHD and _SSH), reason="there is no sshd here (the package openssh-server has it)"
)
"""Marks a test that needs a server of ssh on this machine."""


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Lets git speak to loopback for a while, past any proxy."""
    before = dict(os.environ)
    os.environ.update({"GIT_ALLOW_PROTOCOL": "file:http:ssh", "NO_PROXY": LOOPBACK, **values})
    os.environ["no_proxy"] = LOOPBACK
    try:
        yield
    finally:
        for name in ("GIT_ALLOW_PROTOCOL", "NO_PROXY", "no_proxy", *values):
            os.environ.pop(name, None)
            if name in before:
                os.environ[name] = before[name]


def closed_port() -> int:
    """Returns a port on loopback where nobody listens."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def silent_port() -> Iterator[int]:
    """Gives a port that takes connections and never says a word; git may speak to it."""
    with socket.socket() as listener, _environment():
        listener.bind((LOOPBACK, 0))
        listener.listen()
        yield int(listener.getsockname()[1])


# ------------------------------------------------------------------------------------ HTTP


class HttpServer:
    """Repositories below one folder, over smart HTTP; its attributes change how it behaves."""

    def __init__(self, root: Path, password: str | None) -> None:
        self.password = password
        """What the user "ada" must say; None lets everybody in."""
        self.read_only = False
        self.silent = False
        """Whether requests are taken and never answered."""
        self.delay = 0.0
        """How many seconds it thinks before its next answer, and then never again."""
        self.loses_answers = False
        """Whether what a push asks for is done, and the connection closed without a word."""
        self.requests: list[tuple[str, str]] = []
        self.bodies: list[Mapping[str, str]] = []
        """The headers of each POST that say how its body came."""
        self._root = root
        self._stopped = threading.Event()
        self._server = ThreadingHTTPServer((LOOPBACK, 0), self._handler())
        self._server.daemon_threads = True
        # Closing would wait for threads that wait for us.
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def port(self) -> int:
        """Returns where the server listens."""
        return int(self._server.server_address[1])

    def url(self, repository: Path, login: str = "") -> str:
        """Returns the address of a repository, with `user:password@` if that is given."""
        name = repository.relative_to(self._root)
        return f"http://{login}{LOOPBACK}:{self.port}/{name}"

    def stop(self) -> None:
        """Closes the port and lets go of everybody who waits."""
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server._answer(self)

            def do_POST(self) -> None:
                server._answer(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        self.requests.append((request.command, request.path))
        if self.silent:
            self._stopped.wait()
            request.close_connection = True
            return
        body = _body(request)
        delay, self.delay = self.delay, 0.0
        self._stopped.wait(delay)
        if not self._is_let_in(request.headers.get("Authorization")):
            request.send_response(401)
            request.send_header("WWW-Authenticate", 'Basic realm="tests"')
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        if request.command == "POST":
            self.bodies.append({key.lower(): value for key, value in request.headers.items()})
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            env=self._cgi(request, len(body)),
            cwd=self._root,
            capture_output=True,
            check=False,
        )
        if self.loses_answers and request.path.endswith("/git-receive-pack"):
            request.close_connection = True
            return
        _send(request, done.stdout)

    def _is_let_in(self, authorization: str | None) -> bool:
        if self.password is None:
            return True
        login = base64.b64encode(f"ada:{self.password}".encode()).decode()
        return authorization == f"Basic {login}"

    def _cgi(self, request: BaseHTTPRequestHandler, length: int) -> dict[str, str]:
        # Whoever takes us for a proxy names the host as well; we are every host.
        address = request.path.removeprefix("http://")
        at = 0 if address == request.path else address.index("/")
        path, _, query = address[at:].partition("?")
        env = {
            **os.environ,
            "GIT_PROJECT_ROOT": str(self._root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": request.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_LENGTH": str(length),
            "CONTENT_TYPE": request.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
            "REMOTE_ADDR": LOOPBACK,
        }
        if not self.read_only:
            env["REMOTE_USER"] = "ada"
        return env


def _body(request: BaseHTTPRequestHandler) -> bytes:
    if request.headers.get("Transfer-Encoding", "").lower() != "chunked":
        return request.rfile.read(int(request.headers.get("Content-Length", "0")))
    chunks = []
    while size := int(request.rfile.readline().split(b";")[0], 16):
        chunks.append(request.rfile.read(size))
        request.rfile.readline()
    while request.rfile.readline().strip():
        pass
    return b"".join(chunks)


def _send(request: BaseHTTPRequestHandler, answer: bytes) -> None:
    head, _, body = answer.partition(b"\r\n\r\n")
    fields = [line.partition(": ") for line in head.decode("latin-1").split("\r\n") if line]
    status = next((value for name, _, value in fields if name == "Status"), "200 OK")
    request.send_response(int(status.split(" ")[0]))
    for name, _, value in fields:
        if name != "Status":
            request.send_header(name, value)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    # A client that was stopped reads no more.
    with contextlib.suppress(ConnectionError):
        request.wfile.write(body)


@contextlib.contextmanager
def serve_http(root: Path, password: str | None = None) -> Iterator[HttpServer]:
    """Serves the repositories below a folder over HTTP."""
    with _environment():
        server = HttpServer(root, password)
        try:
            yield server
        finally:
            server.stop()


# ------------------------------------------------------------------------------------- ssh


class SshServer:
    """A sshd of the present user, and the ssh that knows it: in `PATH`, as `ssh`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.port = closed_port()
        self._known, self._keys = folder / "known_hosts", folder / "authorized_keys"
        self.stalled = folder / "stalled"
        """The file that makes it stall while it is there."""
        self._asked = folder / "asked"
        self._pids = folder / "pids"
        for key in ("host", "user"):
            _write_key(folder / key)
        self.let_in()
        self.know()
        self._write_client()
        self._process = self._start()

    def url(self, repository: Path) -> str:
        """Returns the address of a repository."""
        return f"ssh://{LOOPBACK}:{self.port}{repository}"

    @property
    def client(self) -> str:
        """Returns a second ssh that knows this server, as a user's own command."""
        return str(self.folder / "own" / "ssh")

    @property
    def asked(self) -> list[str]:
        """Returns what every ssh was started with, after "bin" or "own"."""
        return self._asked.read_text(encoding="utf-8").splitlines()

    def let_in(self, *, anybody: bool = True) -> None:
        """Lets the user's key in, or nobody."""
        key = (self.folder / "user.pub").read_text(encoding="ascii")
        self._keys.write_text(key if anybody else "", encoding="ascii")

    def know(self, key: str = "host") -> None:
        """Writes down a key that the client expects of the server; none if it is empty."""
        text = (self.folder / f"{key}.pub").read_text(encoding="ascii") if key else ""
        line = f"[{LOOPBACK}]:{self.port} {text}" if text else ""
        self._known.write_text(line, encoding="ascii")

    def stall(self, *, on: bool = True) -> None:
        """Lets everybody in and then does nothing, until it is told to go on."""
        _mark(self.stalled, on=on)

    def refuse_pushes(self, *, on: bool = True) -> None:
        """Lets everybody read, and tells who wants to write that the key is for reading."""
        _mark(self.folder / "read-only", on=on)

    def running(self) -> list[int]:
        """Returns the processes that this server has started and that still run."""
        told = self._pids.read_text(encoding="ascii").split() if self._pids.exists() else []
        return [pid for pid in map(int, told) if _parent(pid) is not None]

    def stop(self) -> None:
        """Ends the server and every process it has started."""
        mine = [self._process.pid, *_descendants(self._process.pid), *self.running()]
        for pid in mine:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and any(_parent(pid) is not None for pid in mine):
            time.sleep(0.005)

    def _write_client(self) -> None:
        config = self.folder / "ssh_config"
        config.write_text(
            f"IdentityFile {self.folder}/user\nIdentitiesOnly yes\nIdentityAgent none\n"
            f"UserKnownHostsFile {self._known}\nGlobalKnownHostsFile /dev/null\n"
            "CheckHostIP no\nUpdateHostKeys no\nAddKeysToAgent no\n"
            # The cheapest there is: each connection begins with it.
            "KexAlgorithms curve25519-sha256\nCiphers aes128-gcm@openssh.com\n",
            encoding="utf-8",
        )
        self._asked.touch()
        for name in ("bin", "own"):
            (self.folder / name).mkdir()
            lines = f'echo "{name} $*" >> {self._asked}\nexec {_SSH} -F {config} "$@"'
            _write_program(self.folder / name / "ssh", lines)

    def _start(self) -> subprocess.Popen[bytes]:
        settings = "\n".join(
            f"export {name}='{os.environ[name]}'"
            for name in os.environ
            if name in ("PATH", "HOME") or name.startswith("GIT_CONFIG_")
        )
        # The shell of the user has read its own files by now; git shall not.
        command = _write_program(
            self.folder / "command",
            f"{settings}\necho $$ >> {self._pids}\n"
            f"while [ -e {self.stalled} ]; do sleep 0.05; done\n"
            f"[ ! -e {self.folder}/read-only ] || case $SSH_ORIGINAL_COMMAND in git-receive-pack*)\n"
            'echo "ERROR: This key has been marked as read only." >&2; exit 1;; esac\n'
            'exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"',
        )
        (self.folder / "sshd_config").write_text(
            f"ListenAddress {LOOPBACK}:{self.port}\nHostKey {self.folder}/host\nPidFile none\n"
            f"AuthorizedKeysFile {self._keys}\nStrictModes no\nUsePAM no\nPrintMotd no\n"
            f"PasswordAuthentication yes\nKbdInteractiveAuthentication no\n"
            f"PermitRootLogin yes\nAcceptEnv GIT_PROTOCOL\nForceCommand {command}\n"
            "PermitUserRC no\nMaxStartups 100\nUseDNS no\nPrintLastLog no\n",
            encoding="utf-8",
        )
        if os.geteuid() == 0:
            # sshd wants this empty folder for the part of it that has no rights.
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        assert _SSHD is not None
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                [_SSHD, "-D", "-e", "-f", str(self.folder / "sshd_config")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 10
        while not _speaks(self.port):
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                process.wait()
                raise AssertionError(f"sshd did not start: {self.log.read_text()}")
            time.sleep(0.01)
        return process


def _mark(file: Path, *, on: bool) -> None:
    if on:
        file.touch()
    else:
        file.unlink(missing_ok=True)


def _write_key(path: Path) -> None:
    secret, public = _key(path.name)
    path.touch(mode=0o600)
    path.write_bytes(secret)
    path.with_suffix(".pub").write_bytes(public)


@functools.cache
def _key(name: str) -> tuple[bytes, bytes]:
    """Makes one of the two pairs of keys that all servers of this process share."""
    keygen = shutil.which("ssh-keygen", path=_SEARCHED)
    assert keygen is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        command = [keygen, "-q", "-t", "ed25519", "-N", "", "-C", "tests", "-f", str(path)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        return path.read_bytes(), path.with_suffix(".pub").read_bytes()


def _write_program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def _speaks(port: int) -> bool:
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1) as connection:
            ready, _, _ = select.select([connection], [], [], 1)
            return bool(ready) and connection.recv(4) == b"SSH-"
    except OSError:
        return False


def _parent(pid: int) -> int | None:
    """Returns the parent of a process that still runs."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, parent = stat.rpartition(")")[2].split()[:2]
    return None if state == "Z" else int(parent)


def _descendants(pid: int) -> list[int]:
    if sys.platform != "linux":
        return []
    parents = {int(e): _parent(int(e)) for e in os.listdir("/proc") if e.isdecimal()}
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


@contextlib.contextmanager
def serve_ssh(folder: Path) -> Iterator[SshServer]:
    """Serves every repository of this machine over ssh; skips where sshd lets nobody in."""
    folder.mkdir()
    with _environment(PATH=f"{folder}/bin{os.pathsep}{os.environ['PATH']}"):
        server = SshServer(folder)
        try:
            _require_login(server)
            yield server
        finally:
            server.stop()


_let_in: set[str] = set()


def _require_login(server: SshServer) -> None:
    """Skips where this machine lets nobody in, whatever the server is told; asked once."""
    if _SSHD in _let_in:
        return
    user = pwd.getpwuid(os.getuid())
    client = [server.client, "-p", str(server.port), "-oBatchMode=yes", LOOPBACK, "git --version"]
    done = subprocess.run(client, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode and "account is locked" in server.log.read_text(encoding="utf-8"):
        pytest.skip(f"the account {user.pw_name} is locked: sshd lets nobody in")
    if done.returncode and os.path.basename(user.pw_shell) in ("nologin", "false"):
        pytest.skip(f"the account {user.pw_name} has no shell: sshd lets nobody in")
    log = server.log.read_text(encoding="utf-8")
    assert done.returncode == 0, f"{done.stderr.decode(errors='replace')}\n{log}"
    server._asked.write_text("", encoding="utf-8")
    _let_in.add(str(_SSHD))

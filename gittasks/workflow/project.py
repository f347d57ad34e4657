"""The project: one repository with its ledger, its worktrees, and whoever speaks.

Every verb gets one. It says who speaks, which task is meant, and it is the one way from a request
to the ledger: `apply` decides on the fresh graph and appends, or writes the outbox of an agent
whose runner is the only writer.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks.domain.errors import (
    Busy,
    Corrupt,
    GuardBroken,
    NoLedger,
    Refused,
    SyncRefused,
    Taken,
    UnknownTask,
    UsageFault,
)
from gittasks.domain.ids import parse_id
from gittasks.ledger import layout
from gittasks.plumbing.repository import Repository
from gittasks.workflow.site import LOCK_TIMEOUT, Publishing
from gittasks.workspaces import records
from gittasks.workspaces.places import Places, state_dir, worktree_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gittasks.domain.config import Project as Settings
    from gittasks.domain.events import Event
    from gittasks.domain.requests import Facts, Request, Speaker
    from gittasks.domain.speaker import Held
    from gittasks.domain.task import State, Task
    from gittasks.domain.task_graph import Graph
    from gittasks.ledger.graph import LedgerGraph
    from gittasks.ledger.ledger import Ledger
    from gittasks.ledger.writing import Appended
    from gittasks.plumbing import refs
    from gittasks.plumbing.repository import Config

DEFAULT_BRANCH = "gittasks"
_ID_LENGTH = 16
_ASK_SECONDS = 5.0
"""How long a refusal may wait for what others did."""


class Options(NamedTuple):
    """What the command line says about where and who; every surface fills it."""

    path: str | None = None
    actor: str | None = None
    role: str | None = None
    claim: str | None = None
    """The secret of a claim, from --claim."""
    offline: bool = False
    at: str | None = None
    """The commit, ref or date at which a read looks, from --at."""


class Outcome(NamedTuple):
    """What a verb did: the task as it is now, the step, the ledger commit, and what to say."""

    task: Task
    kind: str
    source: State | None = None
    target: State | None = None
    commit: str | None = None
    unblocked: tuple[str, ...] = ()
    changed: bool = True
    notes: tuple[str, ...] = ()
    extra: Mapping[str, Any] = {}
    body: bytes | None = None


class Project:
    """One repository as the verbs see it; opened once per command."""

    def __init__(
        self,
        repo: Repository,
        options: Options,
        environ: Mapping[str, str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Takes an opened repository; nothing is read before it is asked for."""
        self.repo = repo
        self.options = options
        self.environ = environ
        self._clock = clock
        self.state_dir = state_dir(repo)
        self._branch: str | None = None
        self._ledger: Ledger | None = None
        self._settings: Settings | None = None
        self.told: tuple[str, ...] = ()
        """What was finished or undone of a landing that a crash had cut short, in sentences."""
        self.warnings: list[str] = []
        """What whoever named a task should know, in sentences."""

    @classmethod
    def open(
        cls,
        options: Options = Options(),  # noqa: B008  # a NamedTuple is immutable
        environ: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Project:
        """Finds the repository; raises NotARepository where there is none."""
        environ = os.environ if environ is None else environ
        usual = f"refs/heads/{DEFAULT_BRANCH}"
        repo = Repository.open(options.path, environ, resolve=(usual,))
        return cls(repo, options, environ, clock)

    def named(self, branch: str) -> Project:
        """Returns the same project with another name for its ledger, which is not remembered."""
        found = Project(self.repo, self.options, self.environ, self._clock)
        found._branch = f"refs/heads/{branch}"
        return found

    def on_wait(self, tell: Callable[[str], None]) -> None:
        """Lets a remote that takes its time be named, once, to whoever waits for it."""
        self.repo.on_wait = tell

    def close(self) -> None:
        """Ends the process behind the answers; the next question starts it again."""
        if self._ledger is not None:
            self._ledger.close()

    def clock(self) -> int:
        """Returns now in whole seconds since 1970; in the past, when the last event happened."""
        if self.options.at is None:
            return int(self._clock())
        return self.ledger.reader.commit(self.ledger.tip).committer_time

    @property
    def config(self) -> Config:
        """Returns the git configuration of this clone."""
        return self.repo.config

    @property
    def branch(self) -> str:
        """Returns the full name of the ledger's ref."""
        if self._branch is not None:
            return self._branch
        return f"refs/heads/{self.config.get('gittasks.branch') or DEFAULT_BRANCH}"

    @property
    def remote(self) -> str | None:
        """Returns the remote that this clone shares its ledger through, None if it does not."""
        return self.config.get("gittasks.remote") or None

    @property
    def publishes(self) -> bool:
        """Tells whether what is claimed, created or landed counts only when the remote has it."""
        return self.remote is not None and not self.is_offline

    @property
    def is_offline(self) -> bool:
        """Tells whether this command does without the remote."""
        return self.options.offline

    @property
    def unsaid(self) -> tuple[str, ...]:
        """Returns what was done on the way, in sentences, for a command that tells nothing else."""
        return self.told if self._ledger is None else (*self.told, *self._ledger.repaired)

    @property
    def has_news(self) -> bool:
        """Tells whether this process has written events that the remote may not have."""
        return self._ledger is not None and self._ledger.has_written

    @property
    def ledger(self) -> Ledger:
        """Returns the ledger; it need not exist yet."""
        if self._ledger is None:
            from gittasks.ledger.ledger import Ledger  # `whoami` needs none

            self._ledger = Ledger(
                self.repo,
                branch=self.branch,
                state_dir=self.state_dir,
                host=lambda: self.host,
                clock=self.clock,
                identity=self.identity,
                sign=self.config.get_bool("gittasks.sign", False),
                lock_timeout=self.config.get_seconds("gittasks.lockTimeout", LOCK_TIMEOUT),
            )
            if self.options.at is not None:
                from gittasks.workflow.past import commit_at  # most look at the present

                self._ledger.look_at(commit_at(self.repo, self._ledger.tip, self.options.at))
        return self._ledger

    @property
    def host(self) -> str:
        """Returns the random id of this clone, made when it is first needed; not a host name."""
        path = os.path.join(self.state_dir, "clone-id")
        found = _first_line(path)
        if not found:
            _keep_new(path, os.urandom(8).hex())
            found = _first_line(path)
        return found

    @property
    def settings(self) -> Settings:
        """Returns what all clones share: `project.yaml` at the tip of the ledger."""
        if self._settings is None:
            self._graph()
            self._settings = self.ledger.project()
        return self._settings

    def shared_text(self, path: str) -> bytes | None:
        """Returns a text that all clones share, for a verb that will write."""
        self._graph()
        return self.ledger.text(path)

    @property
    def base(self) -> str:
        """Returns the full name of the branch that tasks land on."""
        return f"refs/heads/{self.settings.base}"

    @property
    def worktree_root(self) -> str:
        """Returns the folder beside the repository that holds the tasks' folders."""
        return worktree_root(self.repo)

    @property
    def places(self) -> Places:
        """Returns where the things of a task stand on this host."""
        return Places(self.worktree_root, self.state_dir)

    @property
    def branch_prefix(self) -> str:
        """Returns what the names of work branches begin with."""
        return self.config.get("gittasks.branchPrefix", "task/") or "task/"

    @property
    def lease(self) -> int:
        """Returns how many seconds a claim lasts that is taken at the command line."""
        from gittasks.domain.config import parse_duration  # only claims need it

        return parse_duration(self.settings.lease)

    def identity(self) -> tuple[str, str]:
        """Returns name and mail of whoever runs git here; a mail is made up where none is set."""
        name = self.environ.get("GIT_COMMITTER_NAME") or self.config.get("user.name") or _login()
        mail = self.environ.get("GIT_COMMITTER_EMAIL") or self.config.get("user.email")
        return name, mail or f"{_mail_name(name)}@{self.host}.invalid"

    # Which task, and who speaks.

    @property
    def tree_task(self) -> str | None:
        """Returns the id of the task in whose folder the command was started, if any."""
        inside = self.repo.worktree
        if inside is None or self.repo.git_dir == self.repo.common_dir:
            return None
        return self.places.task_of(inside)

    def resolve(self, spelling: str | None) -> str:
        """Returns the six-digit id meant; `.` and nothing mean the task of this place."""
        if spelling is not None and spelling.strip() != ".":
            task_id = parse_id(spelling)
            now = self._number_now(task_id)
            if now is not None:
                self.warnings.append(
                    f"The task that was {task_id} in this clone is {now} since a sync;"
                    f" {task_id} is another one."
                )
            return task_id
        from_env = self.environ.get("GITTASKS_TASK")
        if from_env:
            return self._own_number(parse_id(from_env))
        task = self.tree_task
        if task is None:
            raise UsageFault(
                "No task is named, and this is not the worktree of a task.",
                "Give an id such as 42.",
            )
        return task

    def here(self) -> str | None:
        """Returns the id of the task of this place, None where there is none."""
        from_env = self.environ.get("GITTASKS_TASK")
        return self._own_number(parse_id(from_env)) if from_env else self.tree_task

    def _number_now(self, task_id: str) -> str | None:
        """Returns the number of the task that had this one in this clone before a sync."""
        return records.number_now(self.state_dir, task_id)

    def _own_number(self, task_id: str) -> str:
        """Returns the present number of the task that an agent was given."""
        secret = self.environ.get("GITTASKS_CLAIM")
        if secret is None or self._number_now(task_id) is None:
            return task_id
        record = records.with_claim(self.state_dir, records.claim_of(secret))
        return task_id if record is None else record.task

    def task(self, task_id: str, *, reading: bool = False) -> Task:
        """Returns a task at the tip; raises UnknownTask, Corrupt, or NoLedger before `init`.

        A verb that will write brings a lost ledger back first; one that is only `reading` refuses.
        """
        try:
            return self._graph(reading=reading).need(task_id)
        except UnknownTask as error:
            if self.remote is not None and not self.publishes:
                error.hint = "Run `git tasks sync` first if somebody else has written it down."
            raise

    def _graph(self, *, reading: bool = False) -> LedgerGraph:
        try:
            return self.ledger.graph()
        except Corrupt:
            if reading or self.ledger.is_there or not self.ledger.heal():
                raise
            return self.ledger.graph()

    def speaker(self, verb: str, task_id: str | None = None, *, claiming: bool = False) -> Speaker:
        """Returns who speaks for a verb about a task; `claiming` takes the state's owner."""
        from gittasks.domain import machine, speaker  # a read may not need it

        claim_secret = self.options.claim or self.environ.get("GITTASKS_CLAIM")
        claim = records.claim_of(claim_secret) if claim_secret else None
        own = records.with_claim(self.state_dir, claim) if claim else None
        sources = speaker.Sources(
            flag_actor=self.options.actor,
            flag_role=self.options.role,
            env_actor=self.environ.get("GITTASKS_AGENT"),
            env_role=self.environ.get("GITTASKS_ROLE"),
            claim=claim,
            claim_role=own.role if own else None,  # type: ignore[arg-type]  # a record holds a role
            user_name=self.config.get("user.name"),
            login=_login(),
            in_tree=self.tree_task is not None,
        )

        def record(actor: str) -> Held | None:
            found = records.find(self.state_dir, actor, task=task_id) if task_id else None
            return speaker.Held(found.role, found.claim) if found else None  # type: ignore[arg-type]  # a record holds a role

        owner = None
        if task_id is not None and (claiming or claim):
            task = self._graph(reading=verb in ("prime", "whoami")).get(task_id)
            owner = machine.STAGE[task.state].role if task else None
        return speaker.speaker_of(verb, sources, record, owner)

    def facts(self, speaker: Speaker) -> Facts:
        """Returns what every decision needs to know beside the request."""
        from gittasks.domain.requests import Facts  # only writes decide

        return Facts(
            now=self.clock(),
            host=self.host,
            speaker=speaker,
            rejection_limit=self.settings.rejection_limit,
            check_failure_limit=self.settings.check_failure_limit,
            history=self.ledger.history,
            renewed=self._renewed,
        )

    def _renewed(self, task: Task) -> str | None:
        from gittasks.ledger import leases  # only where a lease looks expired

        return leases.renewed(self.ledger.reader, task.id, task.claim) if task.claim else None

    # From a request to the ledger.

    def apply(
        self,
        requests: Request | Callable[[Graph], Iterable[Request]],
        speaker: Speaker | Callable[[], Speaker],
        *,
        also: Sequence[refs.Change] | Callable[[], Sequence[refs.Change]] = (),
        publishing: Publishing | None = None,
        event_id: str | None = None,
    ) -> Appended:
        """Decides on the fresh graph and appends; whoever loses a race decides again.

        Requests that depend on the graph are given as a function, which is then asked each time;
        so is a speaker whose role the task decides, after the requests. With `publishing`, a
        clone that shares lets them count only when the remote has them. The first event gets an
        `event_id` that is given.
        """
        from gittasks.domain.decide import decide_all  # only writes decide

        self.recover()

        def events(graph: Graph) -> Sequence[Event]:
            wanted = requests(graph) if callable(requests) else (requests,)
            decided = decide_all(
                graph, wanted, self.facts(speaker() if callable(speaker) else speaker)
            )
            if event_id is not None and decided:
                decided[0] = decided[0]._replace(event_id=event_id)
            return decided

        if publishing is not None and self.publishes:
            from gittasks.workflow.exchange import publish  # only a clone that shares

            return publish(self, events, also if callable(also) else lambda: also, publishing)
        try:
            return self.ledger.append(events, also=also)
        except (Refused, Taken, UnknownTask) as refusal:
            if isinstance(refusal, GuardBroken) or not self._has_caught_up():
                raise
        # What refused it was out of date.
        return self.ledger.append(events, also=also)

    def _has_caught_up(self) -> bool:
        """Tells whether others have done something since that this clone has taken over now."""
        if not self.publishes:
            return False
        from gittasks.workflow import exchange  # only a clone that shares

        before = self.ledger.tip
        try:
            exchange.pull(self, timeout=_ASK_SECONDS)
        except (Busy, SyncRefused):
            return False
        return self.ledger.tip != before

    def recover(self) -> None:
        """Finishes or undoes what a crash left of a landing; costs nothing where none did."""
        if not _is_empty(os.path.join(self.state_dir, "landing")):
            from gittasks.workflow.finish import recover_landings  # rarely needed

            self.told += recover_landings(self)
        if os.path.exists(os.path.join(self.state_dir, layout.REPLAYED)):
            from gittasks.workflow import aftermath  # only after a sync that was cut short

            aftermath.finish(self)

    def outcome(self, task_id: str, appended: Appended, **extra: Any) -> Outcome:
        """Returns what an append did to one task, for the surfaces to tell."""
        task = self.task(task_id)
        own = [n for n, event in enumerate(appended.events) if event.task == task_id]
        unblocked = tuple(
            event.task for event in appended.events if event.kind == "unblock" and event.task
        )
        from gittasks.workflow.secrets import warnings

        recovered = (*self.told, *self.ledger.repaired)
        notes = (*recovered, *extra.pop("notes", ()), *warnings(appended.events))
        if not own:
            return Outcome(task, "none", task.state, task.state, None, (), False, notes, extra)
        first = appended.events[own[0]]
        last = appended.events[own[-1]]
        return Outcome(
            task=task,
            kind=last.kind,
            source=first.source,
            target=last.target,
            commit=appended.commits[own[-1]],
            unblocked=unblocked,
            changed=True,
            notes=notes,
            extra=extra,
        )

    def require_ledger(self) -> None:
        """Raises NoLedger where `init` has not been run."""
        if not self.ledger.exists:
            raise NoLedger("There is no ledger in this repository yet.", "Run `git tasks init`.")


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(_ID_LENGTH + 2).strip()
    except FileNotFoundError:
        return ""
    # What a power cut or an editor has left there is no id; nobody else can know this one.
    if len(text) == _ID_LENGTH and text.isascii() and text.isalnum():
        return text
    os.unlink(path)
    return ""


def _keep_new(path: str, text: str) -> None:
    """Writes a file that must not exist yet; whoever was first stays."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    beside = f"{path}.{os.getpid()}"
    try:
        with open(beside, "w", encoding="ascii") as file:
            file.write(text + "\n")
        os.link(beside, path)
    except FileExistsError:
        pass
    finally:
        if os.path.lexists(beside):
            os.unlink(beside)


def _is_empty(folder: str) -> bool:
    try:
        return not os.listdir(folder)
    except OSError:
        return True


def _login() -> str:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        if os.environ.get(name):
            return os.environ[name]
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return "unknown"


def _mail_name(name: str) -> str:
    kept = "".join(c if c.isascii() and (c.isalnum() or c in ".-_") else "-" for c in name)
    return kept.strip("-.") or "unknown"


__all__ = ["DEFAULT_BRANCH", "LOCK_TIMEOUT", "Options", "Outcome", "Project", "Publishing"]

"""Where everything of a ledger is: refs, files, events and limits. This is the format's description.

The ledger is one branch of the repository that shares no history with the code. Whoever has the
branch has every task and all that ever happened to it; nothing else is needed to read it, and
plain `git log gittasks` shows it to people.

## Refs

| ref | meaning |
|---|---|
| `refs/heads/gittasks` | the ledger (the name is a setting): one parent a commit, never rewritten |
| `refs/heads/task/<id>` | the work of one task |
| `refs/gittasks/backup` | the last tip of the ledger known to be good, with its reflog |
| `refs/gittasks/pre-replay/<time>` | a tip that was replaced by a sync or a recovery, kept 30 days |
| `refs/gittasks/landing/<id>` | the prepared commit of a landing in progress |
| `refs/gittasks/landed/<id>` | the branch of a task that landed by rebase or squash |
| `refs/gittasks/aborted/<id>` | the branch of a task that was thrown away |
| `refs/gittasks/leases/<id>` | renewals of a lease: overwritten, never history |
| `refs/gittasks/remotes/<remote>` | the tip of the remote's ledger, when it was last fetched |
| `refs/gittasks/incoming/…` | what was fetched besides: the base, branches of tasks, leases |

Every ref is moved by compare-and-swap, from a value that the mover has read.

## Commits

The first commit is the same in every repository: an empty tree, a fixed identity, date and
message. The second is the event `init`. Each commit has exactly one parent and stands for exactly
one event, and its tree is the parent's tree with that event applied: whoever doubts it can run
the events again. A command that causes several events makes several commits and moves the branch
once. The author is the actor and the author date says when it happened; the committer is whoever
ran the command, and a committer date is never older than the parent's, because git's walks rely
on that. The order of the chain is the order of the events; dates are for display.

## Tree

```
project.yaml                 the shared settings
template.md                  the body that a new task starts with; optional
prompts/<NAME>.md            a prompt that replaces the one that came with the tool; optional
tasks/<hundreds>/<id>.md     the open tasks: task 000042 is tasks/0000/000042.md
closed/<hundreds>/<id>.md    the closed ones; a document moves in the commit that closes its task
```

There are only regular files, no links and nothing executable. Names are ASCII. Folders hold one
hundred tasks, so that an event rewrites the same few kilobytes however many tasks there are.
Nothing in the tree is derived from something else in it, and nothing belongs to one machine.

## Limits

A document has at most 4 MiB, the message of an event at most 1 MiB, a task at most 1,000
dependencies. Ids have six digits. An event whose `Event-Version` is higher than the reader's asks
for a newer tool and is never guessed at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.fields import is_branch
from gittasks.domain.ids import is_id

if TYPE_CHECKING:
    from gittasks.domain.task import Task

__all__ = [
    "BACKUP",
    "BY_SYNC",
    "COPIES",
    "DEFAULT_BRANCH",
    "DOCUMENT_LIMIT",
    "FORMAT",
    "INCOMING",
    "MESSAGE_LIMIT",
    "PRE_REPLAY",
    "PROJECT_FILE",
    "REPLAYED",
    "TEMPLATE_FILE",
    "is_ref_part",
    "is_shared_text",
    "parse_path",
    "path_of",
    "root_commit",
    "task_path",
]

FORMAT = 1
"""The version of everything described here; `project.yaml` repeats it."""

DEFAULT_BRANCH = "refs/heads/gittasks"
BACKUP = "refs/gittasks/backup"
PRE_REPLAY = "refs/gittasks/pre-replay/"
BY_SYNC = "-sync"
"""How the name of a kept tip goes on that a sync has replaced: nobody has to look at it."""
COPIES = "refs/gittasks/remotes/"
INCOMING = "refs/gittasks/incoming/"

REPLAYED = "replayed.json"
"""The file beside the records of claims that says what a replay has left to do."""

PROJECT_FILE = "project.yaml"
TEMPLATE_FILE = "template.md"
PROMPTS = "prompts"
OPEN_FOLDER = "tasks"
CLOSED_FOLDER = "closed"

DOCUMENT_LIMIT = 4 * 1024 * 1024
"""Documents with more bytes are refused unread."""
MESSAGE_LIMIT = 1024 * 1024
"""Messages with more bytes are refused unread."""

_ROOT_PERSON = "gittasks <gittasks@gittasks.invalid> 1704067200 +0000"
_ROOT_MESSAGE = "The root of every task ledger\n"


def root_commit(empty_tree: str) -> bytes:
    """Returns the raw bytes of the first commit, given the id of the empty tree."""
    text = f"tree {empty_tree}\nauthor {_ROOT_PERSON}\ncommitter {_ROOT_PERSON}\n\n{_ROOT_MESSAGE}"
    return text.encode("ascii")


def task_path(task: str, *, closed: bool) -> str:
    """Returns where the document of a task is in the tree."""
    return f"{CLOSED_FOLDER if closed else OPEN_FOLDER}/{task[:4]}/{task}.md"


def path_of(task: Task) -> str:
    """Returns where the document of this task is in the tree."""
    return task_path(task.id, closed=not task.is_open)


def parse_path(path: str) -> tuple[str, bool] | None:
    """Returns id and whether it is among the closed; None if it is no document's path."""
    folder, _, rest = path.partition("/")
    hundreds, _, name = rest.partition("/")
    task = name[:6]
    if folder not in (OPEN_FOLDER, CLOSED_FOLDER) or name[6:] != ".md" or not is_id(task):
        return None
    return (task, folder == CLOSED_FOLDER) if hundreds == task[:4] else None


def is_ref_part(text: str) -> bool:
    """Tells whether the name of a ref may go on with this text after a slash."""
    bad = ("..", "~", "^", ":", "?", "*", "[", "\\", "@{", "//")
    return (
        is_branch(text)
        and not any(part in text for part in bad)
        and text[-1] not in "./"
        and text[0] != "/"
        and not any(part.startswith(".") or part.endswith(".lock") for part in text.split("/"))
        and text != "@"
    )


def is_shared_text(path: str) -> bool:
    """Tells whether a path is that of a text which a `configure` may write."""
    if path == TEMPLATE_FILE:
        return True
    folder, _, name = path.partition("/")
    stem = name.removesuffix(".md")
    return (
        folder == PROMPTS
        and name.endswith(".md")
        and 0 < len(stem) <= 100
        and stem.isascii()
        and stem.replace("-", "").replace("_", "").isalnum()
    )

"""Writes the pages that are derived from the code: `python -m tests.generated [--check]`.

What a table or a docstring of the package says is typed nowhere else. With `--check` nothing is
written; pages that differ from what the code says today are named, and the exit status is 1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import click

from gittasks.cli import catalogue, clicked
from gittasks.domain import config, errors, events, frontmatter, machine
from gittasks.domain.task import ROLES, STATES
from gittasks.ledger import layout, message
from gittasks.prompts import fragments
from tests.support.builders import a_task

CHECKOUT = Path(__file__).resolve().parents[1]
_NOTICE = "<!-- Written by `python -m tests.generated`. Change {source} instead. -->"
_NOBODY = "–"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    names = tuple(head)
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"
    for row in rows:
        yield f"| {' | '.join(cell or _NOBODY for cell in row)} |"


def _code(text: str | None) -> str:
    return f"`{text}`" if text else ""


def _page(title: str, source: str, lines: Iterable[str]) -> str:
    notice = _NOTICE.format(source=source)
    return "\n".join([f"# {title}", "", notice, "", *lines]).rstrip() + "\n"


# docs/states.md


def states_page() -> str:
    """Returns the page about stages and transitions, from the two tables of the state machine."""
    return _page("States", "the tables of `gittasks/domain/machine.py`", _states())


def _states() -> Iterator[str]:
    yield "A task is always in exactly one state. One role owns the state and makes the next move."
    yield from ("", "## Stages", "")
    yield from _table(
        ("state", "owner", "phase", "can be claimed", "worktree at submit", "section written",
         "submit leads to", "feedback leads to", "hold leads to"),
        (
            (s.state, s.role or "", s.phase or "", "yes" if s.claimable else "no",
             "" if s.guard == "none" else s.guard, _code(s.heading), s.next or "", s.back or "",
             s.held or "")
            for s in machine.STAGES
        ),
    )  # fmt: skip
    yield from (
        "",
        "At CHECK the two columns are for `pass` and `fail`. A HELD state is left by `resume`.",
    )
    yield from ("", "## Diagram", "", "```mermaid", *_diagram(), "```", "")
    yield "Left out: `hold` from every state with a phase, and `abort`, which leads to CLOSED."
    yield from ("", "## Who hands over to whom", "", "```mermaid", *_handoffs(), "```", "")
    yield from ("## Transitions", "")
    yield "A transition changes the state. It ends the claim, and the clock of the state restarts."
    yield ""
    yield from _table(
        ("from", "event", "to", "who", "when"),
        (
            (row.source, row.event, row.target, ", ".join(row.who), row.when)
            for row in machine.TRANSITIONS
        ),
    )
    yield from ("", "## Events that leave the state alone", "")
    yield from _table(
        ("event", "who"), ((kind, ", ".join(who)) for kind, who in machine.STEADY.items())
    )
    yield from ("", "`owner` is the role that owns the state, `holder` whoever has the claim.")
    yield from ("", "## Order of the queue", "", *_queue())
    yield from ("", "## Order of the inbox", "", *_inbox(), "")
    yield "Within a rank: most blocking, longest waiting, lowest id."


def _diagram() -> Iterator[str]:
    yield "stateDiagram-v2"
    yield "    [*] --> NEW: create"
    seen: dict[tuple[str, str], list[str]] = {}
    for row in machine.TRANSITIONS:
        if row.event not in ("hold", "abort"):
            events_of = seen.setdefault((row.source, row.target), [])
            events_of += [row.event] if row.event not in events_of else []
    for (source, target), kinds in seen.items():
        yield f"    {source} --> {target}: {', '.join(kinds)}"
    yield "    CLOSED --> [*]"


def _handoffs() -> Iterator[str]:
    """Draws an arrow from the role that fires a transition to the role that owns what follows."""
    yield "flowchart LR"
    yield from (f"    {role}({role})" for role in ROLES)
    seen: dict[tuple[str, str], dict[str, None]] = {}
    for row in machine.TRANSITIONS:
        giver = machine.STAGE[row.source].role
        taker = machine.STAGE[row.target].role
        if giver and taker and giver != taker:
            seen.setdefault((giver, taker), {})[row.event] = None
    for (before, after), kinds in seen.items():
        yield f"    {before} -->|{', '.join(kinds)}| {after}"


def _queue() -> Iterator[str]:
    places = {machine.RESUME_RANK: "WORK again, after checks that failed on this host"}
    for stage in machine.STAGES:
        started, fresh = stage.rank
        if started and started == fresh:
            places[fresh] = stage.state
        elif fresh:
            places[started] = f"{stage.state}, already started"
            places[fresh] = f"{stage.state}, fresh"
    yield from (f"{n}. {place}" for n, (_, place) in enumerate(sorted(places.items()), 1))
    yield ""
    yield "Within a rank: priority (0 first), most open tasks that wait on it, lowest id."
    yield "CHECK is not in it: the checker has a queue of its own."


def _inbox() -> Iterator[str]:
    places = {
        machine.INBOX_ABORTED_DEPENDENCY: "BLOCKED by a task that was aborted",
        machine.INBOX_LEASE_EXPIRED: "a claim whose lease expired",
        machine.INBOX_ATTENTION: "a row of `attention`: something recorded for the manager to see",
        machine.INBOX_UNTRUSTED_CHECK: "CHECK, waiting for `git tasks trust` in this clone",
        machine.INBOX_PROPOSAL: "NEW, proposed by somebody else",
    }
    for state in STATES:
        if rank := machine.inbox_rank(a_task(state=state)):
            places[rank] = state
    yield from (f"{n}. {place}" for n, (_, place) in enumerate(sorted(places.items()), 1))


# docs/events.md

_TYPES = {
    "str": "text",
    "str | None": "text",
    "int": "number",
    "bool": "true or false",
    "tuple[str, ...]": "texts",
    "Pairs": "names with texts",
    "JsonPairs": "names with values",
    "State | None": "DESIGN, PLAN or WORK",
    "Outcome | None": "landed or aborted",
    "Draft | None": "`section`, `offset`",
    "Cost | None": "`state`, `slot`, `seconds`, `cost`, `tokens`",
    "tuple[CheckResult, ...]": "rows of `command`, `exit`, `digest`, `seconds`, `timed_out`",
}


def events_page() -> str:
    """Returns the page about events, from their classes."""
    return _page("Events", "the classes of `gittasks/domain/events.py`", _events())


def _events() -> Iterator[str]:
    yield "Whatever happens is one event, and one commit of the ledger. Its message says who, when, on"
    yield "which task and between which states, as described in [the format](ledger-format.md). What"
    yield "else it changed stands in the trailer `Data`: the fields below, without those that have"
    yield f"their default. This is version {events.EVENT_VERSION}."
    for kind, change in events.CHANGES.items():
        yield from ("", f"## {kind}", "", *_paragraphs(change.__doc__ or ""), "")
        yield f"{_moves_of(kind)}."
        defaults = change._field_defaults
        if change._fields:
            yield ""
            yield from _table(
                ("field", "value", "default"),
                (
                    (_code(name), _type_of(change, name), _default(defaults, name))
                    for name in change._fields
                ),
            )


def _type_of(change: type[events.Change], name: str) -> str:
    spelled = change.__annotations__[name]
    if spelled in _TYPES:
        return _TYPES[spelled]
    # Whatever has a name of its own is a choice between words.
    *others, last = get_args(getattr(events, spelled))
    return f"{', '.join(others)} or {last}"


def _default(defaults: dict[str, object], name: str) -> str:
    if name not in defaults:
        return "has to be there"
    value = defaults[name]
    if value in (None, ()):
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _moves_of(kind: events.Kind) -> str:
    if kind in events.PROJECT_KINDS:
        return "Concerns no task"
    if kind == "create":
        return "From nothing to NEW"
    if kind in machine.STEADY:
        return "Leaves the state as it is"
    rows = [row for row in machine.TRANSITIONS if row.event == kind]
    targets: dict[str, list[str]] = {}
    for row in rows:
        targets.setdefault(row.source, []).append(row.target)
    grouped: dict[str, list[str]] = {}
    for source, reached in targets.items():
        grouped.setdefault(" or ".join(reached), []).append(source)
    return "; ".join(f"{', '.join(froms)} → {to}" for to, froms in grouped.items())


def _paragraphs(docstring: str) -> Iterator[str]:
    yield from (line.strip() for line in docstring.strip().splitlines())


# docs/ledger-format.md


def format_page() -> str:
    """Returns the description of what is stored, from the docstrings of those who store it."""
    return _page("The ledger format", "the docstrings of the modules named below", _format())


def _format() -> Iterator[str]:
    yield f"This is format {layout.FORMAT}."
    parts = (
        ("The ledger", layout),
        ("The message of an event", message),
        ("The task document", frontmatter),
        ("The shared settings", config),
    )
    for title, module in parts:
        yield from ("", f"## {title}", "")
        yield f"From `{module.__name__.replace('.', '/')}.py`."
        yield ""
        for line in (module.__doc__ or "").strip().splitlines():
            yield f"#{line}" if line.startswith("## ") else line


# docs/exit-codes.md


def exit_codes_page() -> str:
    """Returns the table of exit codes and the refusals behind each."""
    return _page("Exit codes", "`gittasks/domain/errors.py`", _exit_codes())


def _exit_codes() -> Iterator[str]:
    yield "With `--json` a failure also prints one document on standard output. Its `error` has `code`"
    yield "and `name` from this table, `message`, `hint`, `retryable` and `task`."
    yield ""
    yield from _table(
        ("code", "name", "meaning"),
        ((str(code), name, text) for code, (name, text) in errors.EXIT_CODES.items()),
    )
    yield from ("", "## Refusals that have a name", "")
    yield from _table(
        ("code", "refusal", "meaning"),
        (
            (str(refusal.exit_code), refusal.__name__, " ".join(_paragraphs(refusal.__doc__ or "")))
            for family in errors.GittasksError.__subclasses__()
            for refusal in family.__subclasses__()
            if refusal.__module__ == errors.__name__
        ),
    )


# docs/commands.md


def commands_page() -> str:
    """Returns the reference of all commands, from the commands."""
    return _page("Commands", "`gittasks/cli`", _commands())


def _commands() -> Iterator[str]:
    group = clicked.group()
    context = click.Context(group, info_name="git tasks")
    yield "`git tasks` alone is `git tasks status`, and `git tasks 42` is `git tasks show 42`. A task is"
    yield "spelled `42`, `000042`, `#42` or `task/000042`; `.` is the task of the worktree you are in."
    yield from ("", "## Everywhere", "", "Before or after the command and its arguments:", "")
    yield from _options(one for one in clicked.GLOBALS if isinstance(one, click.Option))
    for section in catalogue.SECTIONS:
        yield from ("", f"## {section}")
        for name, (place, _) in catalogue.COMMANDS.items():
            command = group.get_command(context, name)
            if place == section and command is not None:
                yield from _command(command, context, name)
    yield from ("", "## Words that are no commands", "")
    yield from _table(("word", "what to do"), ((_code(w), d) for w, d in catalogue.INSTEAD.items()))


def _command(command: click.Command, parent: click.Context, name: str) -> Iterator[str]:
    context = click.Context(command, parent=parent, info_name=name)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    aliases = [alias for alias, of in catalogue.ALIASES.items() if of == name]
    yield from ("", f"### {name}", "", f"`{usage}`", "")
    yield from _paragraphs(command.help or "")
    if aliases:
        yield from ("", f"Also: {', '.join(map(_code, aliases))}.")
    own = [
        one
        for one in command.params
        if isinstance(one, click.Option) and one not in clicked.GLOBALS and not one.hidden
    ]
    if own:
        yield from ("", *_options(own))
    if isinstance(command, click.Group):
        yield ""
        for verb, inner in command.commands.items():
            inner_context = click.Context(inner, parent=context, info_name=verb)
            pieces = inner.collect_usage_pieces(inner_context)
            said = " ".join(_paragraphs(inner.help or ""))
            yield f"- `{' '.join([inner_context.command_path, *pieces])}`: {said}"
            for one in inner.params:
                if isinstance(one, click.Option) and one not in clicked.GLOBALS:
                    yield f"  - {_spelled(one)}: {one.help}"


def _options(options: Iterable[click.Option]) -> Iterator[str]:
    yield from _table(("option", "meaning"), ((_spelled(one), one.help or "") for one in options))


def _spelled(option: click.Option) -> str:
    value = option.metavar or ""
    if not value and isinstance(option.type, click.Choice):
        # A bar would end the cell of the table.
        value = " or ".join(map(str, option.type.choices))
    elif not value and not option.is_flag and not option.count:
        value = option.type.name.upper()
    return f"{', '.join(map(_code, [*option.opts, *option.secondary_opts]))} {value}".rstrip()


# docs/prompts.md


def prompts_page() -> str:
    """Returns the page about what agents are told, from the table of the prompts."""
    return _page("Prompts", "`gittasks/prompts/fragments.py`", _prompts())


def _prompts() -> Iterator[str]:
    yield "Every word that an agent reads is a Markdown file. A fresh session is sent the brief and the"
    yield "prompt of the state, with findings where there are some to settle; a session that goes on is sent"
    yield "one of the others. `git tasks show 42 --prompt` prints what an agent would be sent for a task now."
    yield ""
    yield "`git tasks config --edit prompts/WORK` replaces one of them for the whole project, as a whole: it"
    yield "begins with the text that came with the tool, and an empty text, or `--unset`, goes back to it. The"
    yield "text is in the ledger, so that no agent changes what it is told, and a claim records which one was"
    yield "used. One that cannot be used is refused, naming file and line."
    yield from ("", "## What there is", "")
    yield from _table(
        ("prompt", "what for", "besides the task, it may use"),
        (
            (_code(name), prompt.purpose, ", ".join(_variables(prompt.variables)))
            for name, prompt in fragments.PROMPTS.items()
        ),
    )
    yield ""
    yield "All of them may use `id`, `title`, `state` and `role`, and the lists `author` and `reviewer`, one"
    yield "of which has one item without fields: what stands in it is said to whoever writes a section, or to"
    yield "whoever judges one. `draft` is such a list, too. Kinds: `id`, `state`, `role`, `commit`, `count`"
    yield "and `result` are words, `title` and `by` lines, and the rest texts."
    yield from ("", "## The language", "")
    yield from _paragraphs(fragments.__doc__.partition("\n\n")[2])


def _variables(variables: Mapping[str, Any]) -> Iterator[str]:
    for name, kind in variables.items():
        if name not in fragments.PROMPTS["DESIGN_REVIEW"].variables:
            fields = "" if isinstance(kind, str) else ", ".join(map(_code, kind))
            yield f"`{name}`" + (f" of {fields}" if fields else "")


PAGES: dict[str, Callable[[], str]] = {
    "docs/states.md": states_page,
    "docs/events.md": events_page,
    "docs/ledger-format.md": format_page,
    "docs/exit-codes.md": exit_codes_page,
    "docs/commands.md": commands_page,
    "docs/prompts.md": prompts_page,
}


def stale_pages() -> list[str]:
    """Returns the pages that are missing or say something else than the code."""
    return [
        name
        for name, render in PAGES.items()
        if not (CHECKOUT / name).exists()
        or (CHECKOUT / name).read_text(encoding="utf-8") != render()
    ]


def run(arguments: list[str]) -> int:
    """Writes the pages, or only names the stale ones; returns the exit status."""
    if arguments not in ([], ["--check"]):
        print("usage: python -m tests.generated [--check]", file=sys.stderr)
        return 2
    for name in (stale := stale_pages()):
        if not arguments:
            (CHECKOUT / name).write_text(PAGES[name](), encoding="utf-8")
        print(f"{name} {'is stale' if arguments else 'written'}")
    if arguments and stale:
        print("Run `python -m tests.generated`.", file=sys.stderr)
    return 1 if arguments and stale else 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))

"""The plan that a scripted agent plays, as a JSON file.

    {"000001": {"WORK": [[STEP, …], [STEP, …]], "WORK_REVIEW": [[STEP, …]]},
     "default": {"default": [[STEP, …]]}}

The first key is a task or `default`, the second a state or `default`; what stands there is a list
of turns, a turn is a list of steps. The first prompt that a task gets in a state plays the first
turn, the next one the second, also in another session; the last turn is played again and again. A
list of steps alone is one turn, and a list in the place of the states is good for all of them.

A step is an object with one key:

    {"write": {"path": P, "text": T}}   a file in the tree; its folders are made
    {"append": TEXT}                    to the end of ASSIGNMENT.md, which is the own section
    {"commit": MESSAGE}                 everything in the tree
    {"submit": true}                    or {"no_change": true}, or the section as a text
    {"feedback": [FINDING, …]}          git tasks feedback
    {"hold": REASON}                    git tasks hold
    {"run": [WORD, …]}                  any program, in the tree
    {"say": TEXT}                       into the log
    {"listen": S}                       until something is said to it, at most S seconds
    {"sleep": S}
    {"usage": {"cost": 0.1, "tokens": 10, "output": 5, "context": 50}}   used so far, in all
    {"activity": {"tool": T, "target": T, "key": K, "is_over": false}}
    {"retrying": {"attempt": 1, "reason": R}}
    {"compacted": REASON}
    {"limit": S}                        ends the turn: the provider wants S seconds of peace
    {"error": TEXT}                     ends the turn; or {"text", "outcome", "is_retryable"}
    {"die": true}                       ends the process at once
    {"hang": true}                      never ends the turn; "deaf" does not even hear SIGTERM
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_OUTCOMES = ("done", "error", "aborted", "length", "refused", "limit")


def read(path: str) -> tuple[dict[str, Any], list[str]]:
    """Returns a plan and its faults, each a sentence."""
    try:
        with open(path, "rb") as file:
            plan = json.loads(file.read())
    except OSError as error:
        return {}, [f"The plan {path} cannot be read: {error.strerror}."]
    except ValueError:
        return {}, [f"The plan {path} is not JSON."]
    if not isinstance(plan, dict):
        return {}, [f"The plan {path} is not an object of tasks."]
    faults = [fault for task, states in plan.items() for fault in _faults(task, states)]
    return plan, [f"In the plan {path}, {fault}" for fault in faults]


def _faults(task: str, states: Any) -> list[str]:
    if not isinstance(states, dict):
        states = {"default": states}
    found = []
    for state, turns in states.items():
        where = f"{task}, {state}"
        if not isinstance(turns, list):
            found.append(f"{where} is not a list of turns.")
            continue
        for steps in _turns(turns):
            found += [f"{where}: {fault}" for step in steps if (fault := _fault(step))]
    return found


def turn(plan: dict[str, Any], task: str, state: str, number: int) -> list[dict[str, Any]]:
    """Returns the steps of the turn of this number; after the last one it stays the last."""
    states = plan.get(task, plan.get("default", []))
    if isinstance(states, dict):
        states = states.get(state, states.get("default", []))
    turns = _turns(states)
    return turns[min(number, len(turns) - 1)]


def _turns(turns: list[Any]) -> list[list[Any]]:
    return turns if turns and all(isinstance(turn, list) for turn in turns) else [turns]


def _fault(step: Any) -> str | None:
    if not isinstance(step, dict) or len(step) != 1:
        return f"{json.dumps(step)} is not an object with one key."
    ((name, value),) = step.items()
    if name not in _FITS:
        return f"there is no step {json.dumps(name)}."
    return None if _FITS[name](value) else f"{json.dumps(step)} is not what {name} takes."


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_text, value))


def _has_keys(value: Any, **fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, dict) and all(
        name in fits and fits[name](one) for name, one in value.items()
    )


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_file(value: Any) -> bool:
    return _has_keys(value, path=_is_text, text=_is_text) and len(value) == 2


def _is_usage(value: Any) -> bool:
    return _has_keys(
        value, cost=_is_number, tokens=_is_number, output=_is_number, context=_is_number
    )


def _is_activity(value: Any) -> bool:
    return _has_keys(value, tool=_is_text, target=_is_text, key=_is_text, is_over=_is_bool)


def _is_error(value: Any) -> bool:
    return _is_text(value) or _has_keys(
        value, text=_is_text, outcome=_OUTCOMES.__contains__, is_retryable=_is_bool
    )


def _is_submit(value: Any) -> bool:
    return value is True or _is_text(value) or value == {"no_change": True}


_FITS: dict[str, Callable[[Any], bool]] = {
    "write": _is_file,
    "append": _is_text,
    "commit": _is_text,
    "submit": _is_submit,
    "feedback": _is_list,
    "hold": _is_text,
    "run": _is_list,
    "say": _is_text,
    "listen": _is_number,
    "sleep": _is_number,
    "usage": _is_usage,
    "activity": _is_activity,
    "retrying": lambda value: _has_keys(value, attempt=_is_number, reason=_is_text),
    "compacted": _is_text,
    "limit": _is_number,
    "error": _is_error,
    "die": lambda value: value is True,
    "hang": lambda value: value is True or value == "deaf",
}

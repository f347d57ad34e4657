"""Reads the arguments of a tool as models write them: numbers as texts, one text for a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.domain.errors import UnknownTask, UsageFault

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Arguments:
    """What was given to a tool; what nobody asks for is ignored."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        """Takes them as they came; null is the same as nothing."""
        self._given = {name: value for name, value in given.items() if value is not None}
        self.emptied = tuple(name for name, value in given.items() if value is None)
        """The names that were given as null."""

    def names(self) -> tuple[str, ...]:
        """Returns the names of all that was given."""
        return tuple(self._given)

    def has(self, name: str) -> bool:
        """Tells whether something was given."""
        return name in self._given

    def id(self, name: str = "id") -> str:
        """Returns the spelling of a task; raises UnknownTask for what can be none."""
        return _spelling(name, self._required(name))

    def id_or_none(self, name: str = "id") -> str | None:
        """Returns the spelling of a task, None where there is none."""
        return self.id(name) if self.has(name) else None

    def ids(self, name: str) -> tuple[str, ...]:
        """Returns the spellings of some tasks."""
        return tuple(_spelling(name, one) for one in self._several(name))

    def text(self, name: str) -> str:
        """Returns a text that must be there and say something."""
        found = _text(name, self._required(name))
        if not found.strip():
            raise UsageFault(f"The argument {name} is blank.", f"Give {name} some text.")
        return found

    def text_or_none(self, name: str) -> str | None:
        """Returns a text, None where there is none."""
        return _text(name, self._given[name]) if self.has(name) else None

    def texts(self, name: str) -> tuple[str, ...]:
        """Returns some texts."""
        return tuple(_text(name, one) for one in self._several(name))

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Returns a yes or no."""
        value = self._given.get(name, default)
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if not isinstance(value, bool):
            raise UsageFault(f"The argument {name} is no yes or no.", "Give true or false.")
        return value

    def number(self, name: str, default: int) -> int:
        """Returns a whole number of at least 0."""
        value = self._given.get(name, default)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
            raise UsageFault(f"The argument {name} is no whole number.", "Give one such as 10.")
        if not 0 <= value < 10**9:
            raise UsageFault(f"The argument {name} is out of range.", "Give a number from 0 on.")
        return int(value)

    def word(self, name: str, words: Sequence[str]) -> str | None:
        """Returns one of some words, None where nothing was given."""
        found = self.text_or_none(name)
        if found is None or found.lower() in words:
            return found and found.lower()
        raise UsageFault(
            f"The argument {name} cannot be {found!r}.", f"Give one of {', '.join(words)}."
        )

    def _required(self, name: str) -> Any:
        if not self.has(name):
            raise UsageFault(f"The argument {name} is missing.", f"Give {name}.")
        return self._given[name]

    def _several(self, name: str) -> Sequence[Any]:
        value = self._given.get(name, ())
        return value if isinstance(value, list | tuple) else (value,)


def _spelling(name: str, value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    raise UnknownTask(
        f"There is no task {value!r}: the argument {name} is a number such as 42.",
        "Use the tool task_list to see the tasks.",
    )


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise UsageFault(f"The argument {name} is no text.", f"Give {name} as a text.")

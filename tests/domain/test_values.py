"""Our named tuples do what those of `typing` do."""

from __future__ import annotations

import copy
import pickle
import typing
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from gittasks.domain.values import NamedTuple


class Ours(NamedTuple):
    """A point with a name."""

    x: int
    y: list[str]
    name: str = "here"
    """What it is called."""
    near: Any = None

    @property
    def twice(self) -> int:
        """Returns twice the first."""
        return 2 * self.x

    def moved(self) -> Ours:
        """Returns one further on."""
        return self._replace(x=self.x + 1)


class Theirs(typing.NamedTuple):
    """A point with a name."""

    x: int
    y: list[str]
    name: str = "here"
    """What it is called."""
    near: Any = None


class Alone(NamedTuple):
    """Has no field."""


MAKE: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    ((1, ["a"]), {}),
    ((1,), {"y": ["b"]}),
    ((), {"x": 1, "y": [], "near": 4}),
    ((1, [], "there", 2), {}),
)


@pytest.mark.parametrize(("values", "named"), MAKE)
def test_it_is_made_as_theirs(values: Any, named: Any) -> None:
    ours, theirs = Ours(*values, **named), Theirs(*values, **named)
    assert list(ours) == list(theirs)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert ours._asdict() == theirs._asdict()
    assert (ours.x, ours.y, ours.name, ours.near) == tuple(theirs)
    assert list(ours._replace(name="x")) == list(theirs._replace(name="x"))
    assert type(ours._replace(name="x")) is Ours
    assert type(ours) is Ours


@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), ((1,), {}), ((1, [], "a", 2, 3), {}), ((1, []), {"z": 1}), ((1, []), {"x": 2})],
)
def test_what_theirs_refuses_is_refused(values: Any, named: Any) -> None:
    for kind in (Ours, Theirs):
        with pytest.raises(TypeError):
            kind(*values, **named)


def test_the_class_says_the_same() -> None:
    for name in ("_fields", "_field_defaults", "__match_args__", "__doc__", "__module__"):
        assert getattr(Ours, name) == getattr(Theirs, name)
    assert (Ours.__name__, Ours.__qualname__) == ("Ours", "Ours")
    assert Ours.__annotations__ == {"x": "int", "y": "list[str]", "name": "str", "near": "Any"}
    assert (Alone(), Alone._fields, repr(Alone())) == ((), (), "Alone()")


def test_a_wrong_field_is_no_replacement() -> None:
    values: tuple[Any, ...] = (Ours(1, []), Theirs(1, []))
    for value in values:
        with pytest.raises((TypeError, ValueError), match="unexpected field names"):
            value._replace(**{"z": 1})
        with pytest.raises(TypeError, match="Expected 4 arguments, got 1"):
            value._make([1])


def test_nothing_of_it_can_be_set() -> None:
    value: Any = Ours(1, [])
    for name in ("x", "other"):
        with pytest.raises(AttributeError):
            setattr(value, name, 2)


def test_it_can_be_copied_hashed_matched_and_taken_apart() -> None:
    value = Ours(3, ["a"])
    assert pickle.loads(pickle.dumps(value)) == copy.deepcopy(value) == copy.copy(value) == value
    assert type(copy.copy(value)) is Ours
    assert hash(Ours(1, (), "a")) == hash((1, (), "a", None))  # type: ignore[arg-type]
    match value:
        case Ours(x, [first], near=None):
            assert (x, first) == (3, "a")
        case _:
            pytest.fail("it did not match")
    one, *others = value
    assert (one, others) == (3, [["a"], "here", None])


def test_its_methods_and_properties_stay() -> None:
    assert (Ours(3, []).twice, Ours(3, []).moved()) == (6, Ours(4, []))


def test_a_field_without_a_default_after_one_with_is_refused() -> None:
    with pytest.raises(TypeError, match="without a default"):

        class Wrong(NamedTuple):
            x: int = 1
            y: int  # type: ignore[misc]

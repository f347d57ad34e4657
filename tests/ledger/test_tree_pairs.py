"""What differs between trees is found whatever is in them, and most of them is not taken apart."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gittasks.ledger.tree_pairs import BadTree, TreePairs
from gittasks.ledger.trees import changed_paths
from gittasks.plumbing.objects import FILE, Entry, Reader, tree_bytes
from tests.support.builders import hexadecimal
from tests.support.examples import examples

OID_BYTES = 20
# Ids that look like rows: `100644 a` and a NUL, and blanks and NULs alone.
LIKE_A_ROW = b"100644 a\x00100644 b\x0000".hex()
IDS = st.sampled_from(
    (LIKE_A_ROW, "00" * 20, "20" * 20, hexadecimal("x", 40), "610020" * 6 + "6100")
)
TREES = st.dictionaries(st.sampled_from("abcdefghijkl"), IDS, max_size=12)


class _Stored:
    """Trees by name, and no child of git that reads them."""

    def __init__(self, **trees: bytes) -> None:
        self.trees = trees

    def raw_tree(self, oid: str) -> bytes:
        """Returns the bytes of a tree."""
        return self.trees[oid]


def _pairs(**trees: bytes) -> TreePairs:
    return TreePairs(cast("Reader", _Stored(**trees)), OID_BYTES)


def _rows(tree: dict[str, str]) -> list[Entry]:
    return [Entry(FILE, name, oid) for name, oid in tree.items()]


def _chained(trees: Sequence[dict[str, str]]) -> list[dict[str, tuple[str, str] | None]]:
    names = [f"t{number}" for number in range(len(trees))]
    stored = zip(names, (tree_bytes(_rows(tree)) for tree in trees), strict=True)
    pairs = _pairs(**dict(stored))
    return [
        dict(changed_paths(pairs, before, after))
        for before, after in zip(names, names[1:], strict=False)
    ]


def _expected(before: dict[str, str], after: dict[str, str]) -> dict[str, tuple[str, str] | None]:
    names = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    return {name: (FILE, after[name]) if name in after else None for name in names}


@examples(300)
@given(st.lists(TREES, min_size=2, max_size=5))
def test_what_differs_is_found_and_nothing_else(trees: list[dict[str, str]]) -> None:
    wanted = [_expected(a, b) for a, b in zip(trees, trees[1:], strict=False)]
    assert _chained(trees) == wanted


@examples(20)
@given(st.lists(st.integers(0, 999), min_size=1, max_size=60))
def test_what_differs_is_found_in_wide_trees(numbers: list[int]) -> None:
    """Each number adds a row, or takes it away where it is there."""
    tree = {f"{number:03d}-{'x' * (number % 7)}": "00" * 20 for number in range(0, 1_000, 2)}
    trees = [tree]
    for number in numbers:
        name = f"{number:03d}-{'x' * (number % 7)}"
        now = dict(trees[-1])
        if now.pop(name, None) is None:
            now[name] = LIKE_A_ROW
        trees.append(now)
    wanted = [_expected(a, b) for a, b in zip(trees, trees[1:], strict=False)]
    assert _chained(trees) == wanted


def test_of_two_wide_trees_only_what_differs_is_taken_apart() -> None:
    wide = {f"{number:05d}": "00" * 20 for number in range(5_000)}
    more = {**wide, "02500-more": "11" * 20}
    pairs = _pairs(old=tree_bytes(_rows(wide)), new=tree_bytes(_rows(more)))
    assert pairs.apart("old", "new") == ((), (Entry(FILE, "02500-more", "11" * 20),))


@pytest.mark.parametrize("base", [["b"], ["a", "b"], []])
def test_a_name_that_is_there_twice_is_refused_wherever_it_stands(base: list[str]) -> None:
    good = tree_bytes(_rows(dict.fromkeys(base, "00" * 20)))
    # As a file and as a folder a name stands at two places.
    bad = b"".join(
        mode + b" " + os.fsencode(name) + b"\0" + bytes(20)
        for mode, name in ((b"100644", "a"), (b"100644", "a.b"), (b"40000", "a"), (b"100644", "b"))
    )
    pairs = _pairs(good=good, bad=bad)
    for before, after in (("good", "bad"), ("bad", "good"), (None, "bad")):
        with pytest.raises(BadTree, match="a"):
            pairs.apart(before, after)


def test_an_id_that_looks_like_a_row_is_no_second_name() -> None:
    pairs = _pairs(old=tree_bytes(_rows({"b": LIKE_A_ROW})),
                   new=tree_bytes(_rows({"a": "00" * 20, "b": LIKE_A_ROW})))  # fmt: skip
    assert pairs.apart("old", "new") == ((), (Entry(FILE, "a", "00" * 20),))

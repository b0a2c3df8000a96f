"""Derivations of a grammar: made at random, grown, grafted and made smaller.

`<name>` in a production stands for a symbol of the grammar; any other text, `<` included, is literal.
"""

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

MAX_CHARS = 1 << 17  # of one text, unless it may have more
_DEPTH = 7  # of a random derivation, before it takes the shortest way to its end

Grammar = Mapping[str, Sequence[str]]
"""The productions of each symbol."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A derivation: literal text and further trees in order. Trees may share subtrees, so growth costs little."""

    symbol: str
    parts: tuple["str | Tree", ...]
    size: int = field(compare=False)  # characters of the derived text

    @staticmethod
    def of(symbol: str, parts: Sequence["str | Tree"]) -> "Tree":
        """Return the tree with its size."""
        return Tree(symbol, tuple(parts), sum(len(part) if isinstance(part, str) else part.size for part in parts))

    def with_part(self, index: int, part: "Tree") -> "Tree":
        """Return the tree with another part at `index`."""
        return Tree.of(self.symbol, (*self.parts[:index], part, *self.parts[index + 1 :]))

    def text(self) -> str:
        """Return the derived text."""
        pieces: list[str] = []
        stack: list[str | Tree] = [self]
        while stack:
            part = stack.pop()
            if isinstance(part, str):
                pieces.append(part)
            else:
                stack.extend(reversed(part.parts))
        return "".join(pieces)


Steps = list[tuple[Tree, int]]
"""The way from a root down: trees, each with the index of the part where the way goes on."""


def derive(grammar: Grammar, symbol: str, chance: random.Random) -> Tree:
    """Return a random derivation of the symbol."""
    return _derive(grammar, symbol, chance, _DEPTH)


def _derive(grammar: Grammar, symbol: str, chance: random.Random, depth: int) -> Tree:
    productions = grammar[symbol]
    text = chance.choice(productions) if depth > 0 else min(productions, key=lambda one: _height(grammar, one))
    names = _symbols(grammar)
    parts = [part for part in names.split(text) if part]
    return Tree.of(
        symbol,
        [
            _derive(grammar, part[1:-1], chance, depth - 1) if names.fullmatch(part) is not None else part
            for part in parts
        ],
    )


def _symbols(grammar: Grammar) -> re.Pattern[str]:
    return _compile_symbols(tuple(grammar))


@cache
def _compile_symbols(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(f"(<(?:{'|'.join(map(re.escape, names))})>)")


def _height(grammar: Grammar, production: str) -> float:
    """Return how many further symbols the shortest derivation passes from top to bottom."""
    return _heights(tuple((name, tuple(texts)) for name, texts in grammar.items()))[production]


@cache
def _heights(grammar: tuple[tuple[str, tuple[str, ...]], ...]) -> Mapping[str, float]:
    """Return the height of each production, by rounds until nothing changes."""
    names = _compile_symbols(tuple(name for name, _ in grammar))
    heights = {text: math.inf for _, texts in grammar for text in texts}
    while True:
        lowest = {f"<{name}>": 1 + min(heights[text] for text in texts) for name, texts in grammar}
        following = {text: max((lowest[name] for name in names.findall(text)), default=0.0) for text in heights}
        if following == heights:
            assert math.inf not in heights.values(), "a symbol of the grammar has no end"
            return heights
        heights = following


def _way_down(tree: Tree, chance: random.Random) -> Steps:
    """Return a random way down the tree, larger parts being more likely."""
    steps: Steps = []
    for _ in range(200):
        inner = [index for index, part in enumerate(tree.parts) if isinstance(part, Tree)]
        if not inner or (steps and chance.random() < 0.05):
            break
        weights = [_subtree(tree, index).size + 1 for index in inner]
        index = chance.choices(inner, weights)[0]
        steps.append((tree, index))
        tree = _subtree(tree, index)
    return steps


def _subtree(tree: Tree, index: int) -> Tree:
    part = tree.parts[index]
    assert isinstance(part, Tree)
    return part


def _rebuild(steps: Steps, tree: Tree) -> Tree:
    """Return the whole tree with `tree` at the end of the way."""
    for parent, index in reversed(steps):
        tree = parent.with_part(index, tree)
    return tree


def pump(tree: Tree, chance: random.Random, max_chars: int = MAX_CHARS) -> Tree:
    """Repeat what lies between a symbol and the same symbol inside it, if the way down meets a symbol twice."""
    steps = _way_down(tree, chance)
    if not steps:
        return tree
    visited = [parent for parent, _ in steps] + [_subtree(*steps[-1])]
    pairs = [
        (outer, inner)
        for outer, above in enumerate(visited)
        for inner, below in enumerate(visited[outer + 1 :], outer + 1)
        if above.symbol == below.symbol
    ]
    if not pairs:
        return tree
    outer, inner = chance.choice(pairs)
    times = chance.choice((1, 2, 8, 32, 256, 4096))
    added = max(1, visited[outer].size - visited[inner].size)
    times = min(times, 1 + max(256, 3 * tree.size) // added, (max_chars - tree.size) // added)
    pumped = visited[inner]
    for _ in range(times + 1):
        pumped = _rebuild(steps[outer:inner], pumped)
    return _rebuild(steps[:outer], pumped)


def graft(grammar: Grammar, tree: Tree, other: Tree, chance: random.Random, max_chars: int = MAX_CHARS) -> Tree:
    """Put a fresh derivation, or a part of another tree with the same symbol, in the place of a part."""
    steps = _way_down(tree, chance)
    place = _subtree(*steps[-1]) if steps else tree
    donors = [_subtree(*step) for step in _way_down(other, chance)]
    same = [donor for donor in donors if donor.symbol == place.symbol]
    graft = chance.choice(same) if same and chance.random() < 0.6 else derive(grammar, place.symbol, chance)
    return _rebuild(steps, graft) if tree.size + graft.size <= max_chars else tree


def shrink(grammar: Grammar, tree: Tree, chance: random.Random) -> Tree | None:
    """Return a smaller tree: a part replaced by the same symbol inside it, or by the shortest derivation."""
    steps = _way_down(tree, chance)[: chance.randrange(1, 40)]
    visited = [parent for parent, _ in steps] + ([_subtree(*steps[-1])] if steps else [])
    if not visited:
        return None
    at = chance.randrange(len(visited))
    inside = [below for below in visited[at + 1 :] if below.symbol == visited[at].symbol]
    shortest = _derive(grammar, visited[at].symbol, chance, 0)
    part = chance.choice(inside) if inside and chance.random() < 0.7 else shortest
    return _rebuild(steps[:at], part) if part.size < visited[at].size else None

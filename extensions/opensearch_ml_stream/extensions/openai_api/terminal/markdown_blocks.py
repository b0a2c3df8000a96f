"""Cuts Markdown that is still being written into blocks that change no more, and the tail that does."""

import re
from collections.abc import Sequence

_FENCE = re.compile(r" {0,3}(`{3,}(?!.*`)|~{3,})(.*)")


class MarkdownBlocks:
    """Takes time linear in the text, however small its pieces.

    A block ends before a line that is not indented and follows a blank one, outside of fenced code. A list whose items
    stand apart comes in several blocks, each of which knows its number.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []  # of the block that has not ended
        self._rest: list[str] = []  # of the line that has not ended
        self._fence = ""
        self._fence_line = ""

    def feed(self, text: str) -> Sequence[str]:
        """Return the blocks that are known to have ended."""
        if "\n" not in text:
            self._rest.append(text)
            return ()
        *lines, rest = "".join([*self._rest, text]).split("\n")
        self._rest = [rest]
        return [block for line in lines if (block := self._add_line(line)) is not None]

    def tail(self, lines: int, characters: int) -> str:
        """Return the end of the block that has not ended, so many lines and characters of it at most.

        Of code that is longer it begins as the code does, so that it is code, too.
        """
        shown = _last(self._lines[-lines:], characters)
        is_cut = bool(self._fence) and len(shown) < len(self._lines)
        return "\n".join([*([self._fence_line] if is_cut else []), *shown, "".join(_last(self._rest, characters))])

    def close(self) -> Sequence[str]:
        """Return the last blocks, with which the text ends."""
        ended = self._add_line("".join(self._rest))
        return [*([] if ended is None else [ended]), "\n".join(self._lines)]

    def _add_line(self, line: str) -> str | None:
        """Take in a line; return the block that ends before it, None if none does."""
        ended = None
        if not self._fence and self._lines and not self._lines[-1].strip() and line.strip() and not line[0].isspace():
            ended = "\n".join(self._lines)
            self._lines = []
        self._lines.append(line)
        self._note_fence(line)
        return ended

    def _note_fence(self, line: str) -> None:
        fence = _FENCE.match(line)
        if fence is None:
            return
        if not self._fence:
            self._fence, self._fence_line = fence[1], line
        elif fence[1].startswith(self._fence) and not fence[2].strip():
            self._fence = ""


def _last(texts: Sequence[str], characters: int) -> list[str]:
    taken: list[str] = []
    for text in reversed(texts):
        if characters <= 0:
            break
        taken.append(text[-characters:])
        characters -= len(text)
    return taken[::-1]

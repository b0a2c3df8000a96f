"""A text that its provider tells in pieces, whole, or both ways, maybe more than once: nothing of it is taken twice."""


class GrowingText:
    """What has been taken of one text. Of the text itself it keeps the last piece, to see that a whole one goes on.

    A start may tell text already. It waits for the piece that follows: that goes on from it, or begins to repeat it.
    """

    __slots__ = ("_is_replaced", "_last", "_start", "length")

    def __init__(self) -> None:
        self.length = 0
        self._last = ""
        self._start = ""
        self._is_replaced = False

    def start(self, text: str, *, is_replaced: bool = False) -> None:
        """Note the text of a start; pieces that do not repeat it replace it if it `is_replaced`, else they go on."""
        if not self.length:
            self._start, self._is_replaced = text, is_replaced

    def piece(self, text: str) -> str:
        """Return what to take for a piece."""
        return self._take(self._after_start(text) if self._start else text)

    def whole(self, text: str, most: int) -> str:
        """Return what a whole text goes on with: nothing if it is another text, or goes on by more than `most`."""
        rest = text[self.length :]
        if not rest or len(rest) > most or not text.startswith(self._last, self.length - len(self._last)):
            return ""
        self._start = ""
        return self._take(rest)

    def end(self) -> str:
        """Return what is left of the text of a start."""
        text, self._start = self._start[self.length :], ""
        return self._take(text)

    def is_of(self, text: str) -> bool:
        """Return whether this text, as far as it was taken, has the length and the end of another."""
        return self.length == len(text) and text.endswith(self._last)

    def _after_start(self, text: str) -> str:
        start, repeated = self._start, self.length
        if start.startswith(text, repeated):
            if repeated + len(text) == len(start):
                self._start = ""
            return text
        self._start = ""
        return text if self._is_replaced and not repeated else start[repeated:] + start[:repeated] + text

    def _take(self, text: str) -> str:
        if text:
            self.length += len(text)
            self._last = text
        return text

"""Text that a provider sends in pieces, whole, or both ways, perhaps more than once: no part of it is taken twice."""


class AccumulatedText:
    """What has been taken of one text. It keeps the length and the last piece, to compare a whole text with them.

    The start of a text may hold text already. It waits for the next piece, which continues it or begins to repeat it.
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


MIN_VERSION_CHARS = 8  # of a first text, with all of which another does not begin by chance


class PiecesOrVersions:
    """Texts of events that are pieces or, as some gateways send them, versions: each is all of the text so far.

    That a text begins with all that came before it may be chance, once. So it waits for the next text, and two in a row
    say that they are versions.
    """

    __slots__ = ("_are_versions", "_held", "_so_far")

    def __init__(self) -> None:
        self._so_far: str | None = ""  # None once they are known to be pieces
        self._are_versions = False
        self._held = ""

    def add(self, text: str) -> str:
        """Return what is new in the text of an event, with what has waited for it."""
        so_far, held = self._so_far, self._held
        if so_far is None or not text:
            return text
        if not so_far or (self._are_versions and text.startswith(so_far)):
            self._so_far = text
            return text[len(so_far) :]
        if len(text) > len(held or so_far) and text.startswith(held or so_far):
            if not held:
                self._held = text
                return ""
            self._are_versions, self._held, self._so_far = True, "", text
            return text[len(so_far) :]
        self._held, self._so_far = "", None
        return held + text

    def end(self) -> str:
        """Return what waits for another text that does not come."""
        if not (held := self._held):
            return ""
        so_far, self._held, self._so_far = self._so_far or "", "", None
        return held[len(so_far) :] if len(so_far) >= MIN_VERSION_CHARS else held

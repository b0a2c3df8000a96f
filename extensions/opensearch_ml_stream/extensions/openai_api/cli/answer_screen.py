"""An answer on a terminal: Markdown that is drawn while it is being written."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import RLock, Timer
from time import monotonic
from types import TracebackType
from typing import Any, Self

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.segment import Segment
from rich.text import Text

from opensearch_ml_stream.extensions.openai_api.cli.chat_answer import AnswerFigures, ChatAnswer, Piece
from opensearch_ml_stream.plugin.cli.printing import printable

DRAW_SECONDS = 1 / 8
_MAX_MARKDOWN = 100_000  # characters of a block; a longer one is shown as it is


class AnswerScreen(AbstractContextManager["AnswerScreen"]):
    """Draws at most eight times a second: finished blocks for good, and a screenful of the unfinished block.

    So the work is linear in the answer's length, and what has scrolled away is never drawn again.
    """

    def __init__(
        self,
        console: Console,
        clock: Callable[[], float] = monotonic,
        new_timer: Callable[[float, Callable[[], None]], Timer] = Timer,
    ) -> None:
        self._console, self._clock, self._new_timer = console, clock, new_timer
        self._live = Live(
            console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        self._lock = RLock()  # a timer draws the last text before a pause
        self._timer: Timer | None = None
        self._drawn_at = -DRAW_SECONDS
        self._blocks = MarkdownBlocks()
        self._is_reasoning = False
        self._ended: list[RenderableType] = []
        self._has_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        timer = self._timer  # it may be drawing now, and clear the attribute
        if timer is not None:
            timer.cancel()
            timer.join()
        with self._lock:
            self._end_section()
            if self._ended:
                self._draw()
            self._live.stop()

    def add(self, piece: Piece) -> None:
        """Add a piece of the answer; it is drawn at once, or together with the next eighth of a second."""
        with self._lock:
            self._take(piece.reasoning, is_reasoning=True)
            self._take(piece.text, is_reasoning=False)
            wait = self._drawn_at + DRAW_SECONDS - self._clock()
            if wait <= 0:
                self._draw()
            elif self._timer is None:
                self._timer = self._new_timer(wait, self._draw_late)
                self._timer.daemon = True
                self._timer.start()

    def _take(self, text: str, *, is_reasoning: bool) -> None:
        if not text:
            return
        if is_reasoning is not self._is_reasoning:
            self._end_section()
            self._is_reasoning = is_reasoning
        for block in self._blocks.feed(text):
            self._end_block(block)

    def _end_section(self) -> None:
        for block in self._blocks.close():
            self._end_block(block)
        self._blocks = MarkdownBlocks()

    def _end_block(self, block: str) -> None:
        if block.strip():
            self._ended.append(self._shown(block))

    def _draw_late(self) -> None:
        with self._lock:
            self._timer = None
            self._draw()

    def _draw(self) -> None:
        self._drawn_at = self._clock()
        self._live.start()  # later calls do nothing
        width, height = self._console.size
        tail = self._blocks.tail(height, width * height)
        with self._console:  # one write
            shown = [self._shown(tail)] if tail.strip() else []
            is_below = self._has_shown or bool(self._ended)
            self._live.update(_Blocks(shown, is_below, height - 2), refresh=True)
            if self._ended:
                self._console.print(_Blocks(self._ended, self._has_shown), end="")
                self._has_shown = True
                self._ended = []

    def _shown(self, block: str) -> RenderableType:
        text = printable(block).strip("\n")
        if self._is_reasoning:
            return Text(text, style="dim italic")
        if len(text) > _MAX_MARKDOWN:
            return Text(text)
        return Markdown(text, hyperlinks=False)  # the address is shown: the link's text could name another


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Blocks with empty lines between them, and one before them if they are below others; or the last rows of these.

    Control characters, which Markdown can write as entities, are left out.
    """

    blocks: Sequence[RenderableType]
    is_below: bool
    rows: int = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines: list[list[Segment]] = []
        for block in self.blocks:
            between: list[list[Segment]] = [[]] if lines or self.is_below else []
            lines += between + _without_margins(console.render_lines(block, options, pad=False))
        for line in lines[-self.rows :]:
            yield from (Segment(printable(segment.text), segment.style) for segment in line)
            yield Segment.line()


def _without_margins(lines: list[list[Segment]]) -> list[list[Segment]]:
    """Drop empty lines before and after; lines with a background are not empty."""
    filled = [number for number, line in enumerate(lines) if not all(map(_is_empty, line))]
    return lines[filled[0] : filled[-1] + 1] if filled else []


def _is_empty(segment: Segment) -> bool:
    return not segment.text.strip() and (segment.style is None or segment.style.bgcolor is None)


_FENCE = re.compile(r" {0,3}(`{3,}(?!.*`)|~{3,})(.*)")


class MarkdownBlocks:
    """Cuts Markdown that is still being written into finished blocks and the unfinished rest, in linear time.

    A block ends before a line that is not indented and follows a blank one, outside of fenced code. A list with empty
    lines between its items comes in several blocks, each of which has its number.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []  # of the block that has not ended
        self._rest: list[str] = []  # of the line that has not ended
        self._fence = ""
        self._fence_line = ""

    def feed(self, text: str) -> Sequence[str]:
        """Return the blocks that have ended."""
        if "\n" not in text:
            self._rest.append(text)
            return ()
        *lines, rest = "".join([*self._rest, text]).split("\n")
        self._rest = [rest]
        return [block for line in lines if (block := self._add_line(line)) is not None]

    def tail(self, lines: int, characters: int) -> str:
        """Return the end of the unfinished block, limited to these lines and characters.

        The end of a longer block of code begins with its fence, so that it is shown as code.
        """
        shown = _last(self._lines[-lines:], characters)
        is_cut = bool(self._fence) and len(shown) < len(self._lines)
        return "\n".join([*([self._fence_line] if is_cut else []), *shown, "".join(_last(self._rest, characters))])

    def close(self) -> Sequence[str]:
        """Return the last blocks, at the end of the text."""
        ended = self._add_line("".join(self._rest))
        return [*([] if ended is None else [ended]), "\n".join(self._lines)]

    def _add_line(self, line: str) -> str | None:
        """Add a line; return the block that ends before it, None if none does."""
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


Events = Iterable[Mapping[str, Any]]


def draw_answer(console: Console, events: Events, answer: ChatAnswer, figures: AnswerFigures) -> None:
    """Draw an answer as it comes, and collect it; below it draw its tool calls and notes on its end."""
    with AnswerScreen(console) as screen:
        for event in events:
            piece = answer.add(event)
            figures.add(piece)
            screen.add(piece)
    for note in answer.notes():
        say(console, note)


def say(console: Console, text: str, style: str = "dim") -> None:
    """Show a message of ours, which may quote text of others."""
    console.print(Text(printable(text), style=style))

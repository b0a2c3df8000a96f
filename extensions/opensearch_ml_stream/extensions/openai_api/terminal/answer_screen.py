"""An answer on a terminal: Markdown that is drawn while it is being written."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import RLock, Timer
from time import monotonic
from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.segment import Segment
from rich.text import Text

from opensearch_ml_stream.extensions.openai_api.terminal.chat_answer import Piece
from opensearch_ml_stream.extensions.openai_api.terminal.markdown_blocks import MarkdownBlocks
from opensearch_ml_stream.plugin.cli.printable_text import printable

DRAW_SECONDS = 1 / 8
_MAX_MARKDOWN = 100_000  # characters of a block; a longer one is shown as it is


class AnswerScreen(AbstractContextManager["AnswerScreen"]):
    """Draws eight times a second at most; each time what has ended since then, for good, and a screenful that has not.

    So the work is linear in the answer's length, and what the terminal has scrolled away is never drawn again.
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
        self._lock = RLock()  # what comes last before a pause is drawn by a timer
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
        timer = self._timer  # it may be drawing just now, and forget itself
        if timer is not None:
            timer.cancel()
            timer.join()
        with self._lock:
            self._end_section()
            if self._ended:
                self._draw()
            self._live.stop()

    def add(self, piece: Piece) -> None:
        """Take in a piece of the answer; it is drawn at once, or with what comes in the next eighth of a second."""
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
        self._live.start()  # with the first that there is to draw; later calls do nothing
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
        return Markdown(text, hyperlinks=False)  # the address is shown: a text could say another


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Blocks with a line between them, and before them if they stand below others; or the last rows of all that.

    Control characters that Markdown has names for are left out.
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
    """Drop the empty lines before and after; those that have a background belong to what is shown."""
    filled = [number for number, line in enumerate(lines) if not all(map(_is_empty, line))]
    return lines[filled[0] : filled[-1] + 1] if filled else []


def _is_empty(segment: Segment) -> bool:
    return not segment.text.strip() and (segment.style is None or segment.style.bgcolor is None)

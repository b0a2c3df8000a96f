"""Rich's console for what others may have written. It is loaded where there is something to draw."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from opensearch_ml_stream.plugin.cli.printing import printable


class TerminalConsole(Console):
    """A console that draws nothing but printable text on a terminal, whatever it is asked to draw.

    Mark-up, names of emoji and highlights are no part of a text that others wrote, so they are shown as they stand.
    """

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        super().__init__(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments that draw something; what moves the cursor comes from the console itself alone."""
        drawn = super().render(renderable, options)
        if not self.is_terminal:
            return drawn
        return (part if part.control else Segment(printable(part.text), part.style) for part in drawn)

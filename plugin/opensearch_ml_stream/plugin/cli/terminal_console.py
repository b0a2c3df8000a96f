"""Rich's console for text of models and servers. It is loaded where there is a terminal."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from opensearch_ml_stream.plugin.cli.printing import printable


class TerminalConsole(Console):
    """A console that draws printable text only on a terminal.

    Mark-up and emoji codes in a text are shown as they stand, and nothing is highlighted.
    """

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        super().__init__(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments to draw; only the console's own segments may move the cursor."""
        drawn = super().render(renderable, options)
        if not self.is_terminal:
            return drawn
        return (part if part.control else Segment(printable(part.text), part.style) for part in drawn)

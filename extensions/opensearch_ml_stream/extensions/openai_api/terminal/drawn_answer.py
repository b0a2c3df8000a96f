"""An answer with all that is shown of it on a terminal."""

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from opensearch_ml_stream.extensions.openai_api.terminal.answer_figures import AnswerFigures
from opensearch_ml_stream.extensions.openai_api.terminal.answer_screen import AnswerScreen
from opensearch_ml_stream.extensions.openai_api.terminal.chat_answer import ChatAnswer
from opensearch_ml_stream.plugin.cli.printable_text import printable

Events = Iterable[Mapping[str, Any]]


def draw_answer(console: Console, events: Events, answer: ChatAnswer, figures: AnswerFigures) -> None:
    """Draw an answer as it comes, and take it in; below it its tool calls and what is to be said of its end."""
    with AnswerScreen(console) as screen:
        for event in events:
            piece = answer.add(event)
            figures.add(piece)
            screen.add(piece)
    for note in answer.notes():
        say(console, note)


def say(console: Console, text: str, style: str = "dim") -> None:
    """Show something that is not the model's answer, but may have parts that others wrote."""
    console.print(Text(printable(text), style=style))

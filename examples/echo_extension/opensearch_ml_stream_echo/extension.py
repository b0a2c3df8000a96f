"""The declaration: read by every command, so it imports nothing that takes time."""

from dataclasses import dataclass

from opensearch_ml_stream.plugin.extension import Command, Extension
from opensearch_ml_stream.plugin.settings.setting_metadata import setting


@dataclass(frozen=True, slots=True)
class EchoSettings:
    """The setting of the extension."""

    words_per_second: float = setting(
        20,
        "How fast the echo speaks",
        name="opensearch_ml_stream.echo.words_per_second",
        dynamic=True,
        minimum=0.1,
        maximum=100_000,
    )


EXTENSION = Extension(
    name="echo",
    summary="A model that says what it is told, a word at a time, to try applications with.",
    open="opensearch_ml_stream_echo.opening:open_echo",
    settings=EchoSettings,
    commands=(Command("echo", "opensearch_ml_stream_echo.command:echo", "Make a model of it; prints its id."),),
    providers=("opensearch_ml_stream_echo.provider:ECHO",),
)

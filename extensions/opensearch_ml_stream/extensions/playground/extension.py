"""The declaration of the playground, with its setting and its path."""

from dataclasses import dataclass

from opensearch_ml_stream.plugin.extension import Extension
from opensearch_ml_stream.plugin.settings.setting_metadata import setting


@dataclass(frozen=True, slots=True)
class PlaygroundSettings:
    """The setting of the playground."""

    playground: bool = setting(
        True, "Whether there is a playground, the page /_ui/", name="opensearch_ml_stream.playground"
    )


UI_PATH = "/_ui"


EXTENSION = Extension(
    name="playground",
    summary="The playground at `/_ui/`: a page to set models up, to ask them, and to watch them.",
    open="opensearch_ml_stream.extensions.playground.opening:open_playground",
    settings=PlaygroundSettings,
    paths=(UI_PATH,),
)

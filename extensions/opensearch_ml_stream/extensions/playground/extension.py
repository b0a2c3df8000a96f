"""The declaration of the playground."""

from opensearch_ml_stream.extensions.playground.paths import UI_PATH
from opensearch_ml_stream.extensions.playground.settings import PlaygroundSettings
from opensearch_ml_stream.plugin.extension import Extension

EXTENSION = Extension(
    name="playground",
    summary="The playground at `/_ui/`: a page to set models up, to ask them, and to watch them.",
    open="opensearch_ml_stream.extensions.playground.opening:open_playground",
    settings=PlaygroundSettings,
    paths=(UI_PATH,),
)

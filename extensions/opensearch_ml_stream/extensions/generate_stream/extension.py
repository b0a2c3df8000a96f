"""The declaration of `/generate-stream`."""

from opensearch_ml_stream.extensions.generate_stream.settings import GenerateStreamSettings
from opensearch_ml_stream.plugin.extension import PLAIN_ERRORS, Extension

GENERATE_STREAM_PATH = "/generate-stream"


EXTENSION = Extension(
    name="generate_stream",
    summary="`/generate-stream`, the route of vLLM's tutorials, over one model, with a page that shows it.",
    open="opensearch_ml_stream.extensions.generate_stream.opening:open_generate_stream",
    settings=GenerateStreamSettings,
    requires=("v2",),
    paths=(GENERATE_STREAM_PATH,),
    error_form=PLAIN_ERRORS,
)

"""The declaration of `/generate-stream`, with its setting."""

from dataclasses import dataclass

from opensearch_ml_stream.plugin.extension import PLAIN_ERRORS, Extension
from opensearch_ml_stream.plugin.settings.setting_metadata import setting

GENERATE_STREAM_PATH = "/generate-stream"


@dataclass(frozen=True, slots=True)
class GenerateStreamSettings:
    """The setting of `/generate-stream`."""

    generate_stream_model: str = setting(
        "",
        "Name or id of the model behind /generate-stream; without one there is no such route",
        name="opensearch_ml_stream.generate_stream_model",
        dynamic=True,
    )


EXTENSION = Extension(
    name="generate_stream",
    summary="`/generate-stream`, the route of vLLM's tutorials, over one model, with a page that shows it.",
    open="opensearch_ml_stream.extensions.generate_stream.opening:open_generate_stream",
    settings=GenerateStreamSettings,
    requires=("v2",),
    paths=(GENERATE_STREAM_PATH,),
    error_form=PLAIN_ERRORS,
)

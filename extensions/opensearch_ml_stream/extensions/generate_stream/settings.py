"""The setting of `/generate-stream`: the model that answers."""

from dataclasses import dataclass

from opensearch_ml_stream.plugin.settings.setting_metadata import setting


@dataclass(frozen=True, slots=True)
class GenerateStreamSettings:
    """The setting of `/generate-stream`."""

    generate_stream_model: str = setting(
        "",
        "Name or id of the model behind /generate-stream; without one there is no such route",
        name="opensearch_ml_stream.generate_stream_model",
        dynamic=True,
    )

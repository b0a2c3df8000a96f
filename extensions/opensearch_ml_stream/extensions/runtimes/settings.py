"""Settings of the models that run in processes of the server."""

from dataclasses import dataclass

from opensearch_ml_stream.plugin.settings.setting_metadata import setting


@dataclass(frozen=True, slots=True)
class RuntimesSettings:
    """The settings of the models that run in processes of the server; without a folder there are none."""

    models: str = setting(
        "",
        "Folder of models that run in processes of this server, each a folder with a model-settings.json",
        name="opensearch_ml_stream.models",
    )
    models_watch: bool = setting(
        False,
        "Load these models anew when their files change, and those that come, and unload those that go",
        name="opensearch_ml_stream.models_watch",
    )

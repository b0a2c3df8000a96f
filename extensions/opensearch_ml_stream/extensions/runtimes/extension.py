"""The declaration of runtimes, models that run in processes of this server, with their settings."""

from dataclasses import dataclass

from opensearch_ml_stream.plugin.extension import Extension, ServeOption, ServerProcess
from opensearch_ml_stream.plugin.settings.setting_metadata import setting

_KEEPER = "opensearch_ml_stream.extensions.runtimes.keeper.keeper_process:"


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


EXTENSION = Extension(
    name="runtimes",
    summary="Models that run in processes of this server, written for MLServer's interface (`serve --models DIR`).",
    open="opensearch_ml_stream.extensions.runtimes.opening:open_runtimes",
    settings=RuntimesSettings,
    requires=("v2",),
    serve_options=(
        ServeOption(
            "--models",
            "opensearch_ml_stream.models",
            "Folder of models that run here, each a folder with a model-settings.json.",
            metavar="DIR",
        ),
        ServeOption(
            "--models-watch",
            "opensearch_ml_stream.models_watch",
            "Load these anew when their files change.",
            is_flag=True,
        ),
    ),
    processes=(ServerProcess("keeper", prepare=f"{_KEEPER}prepare", run=f"{_KEEPER}open_keeper", has_tasks=True),),
)

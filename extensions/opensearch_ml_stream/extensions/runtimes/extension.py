"""The declaration of runtimes: models that run in processes of this server."""

from opensearch_ml_stream.extensions.runtimes.settings import RuntimesSettings
from opensearch_ml_stream.plugin.extension import Extension, ServeOption, ServerProcess

_KEEPER = "opensearch_ml_stream.extensions.runtimes.keeper.keeper_process:"

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

"""The declaration of the front door, with its setting."""

from dataclasses import dataclass

from opensearch_ml_stream.plugin.extension import Extension, ServeOption
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.settings.setting_metadata import setting


@dataclass(frozen=True, slots=True)
class FrontDoorSettings:
    """The setting of the front door."""

    pass_through: bool = setting(
        False,
        "Send every request that is not the sidecar's to the OpenSearch of the store, with its caller's credentials",
        name="opensearch_ml_stream.pass_through",
    )


def _is_on(settings: Settings) -> bool:
    return settings.of(FrontDoorSettings).pass_through


EXTENSION = Extension(
    name="front_door",
    summary="The front door: requests that are not the sidecar's go on to the OpenSearch of the store.",
    open="opensearch_ml_stream.extensions.front_door.opening:open_front_door",
    is_on=_is_on,
    settings=FrontDoorSettings,
    check="opensearch_ml_stream.extensions.front_door.opening:check_store",
    serve_options=(
        ServeOption(
            "--pass-through",
            "opensearch_ml_stream.pass_through",
            "Send requests that are not the sidecar's to the OpenSearch of --store.",
            is_flag=True,
        ),
    ),
)

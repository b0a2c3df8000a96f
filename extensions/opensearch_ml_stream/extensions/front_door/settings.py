"""The setting of the front door: whether requests go on to the cluster."""

from dataclasses import dataclass

from opensearch_ml_stream.plugin.settings.setting_metadata import setting


@dataclass(frozen=True, slots=True)
class FrontDoorSettings:
    """The setting of the front door."""

    pass_through: bool = setting(
        False,
        "Send every request that is not the sidecar's to the OpenSearch of the store, with its caller's credentials",
        name="opensearch_ml_stream.pass_through",
    )

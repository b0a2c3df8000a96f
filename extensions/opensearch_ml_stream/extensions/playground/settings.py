"""The setting of the playground: whether there is one."""

from dataclasses import dataclass

from opensearch_ml_stream.plugin.settings.setting_metadata import setting


@dataclass(frozen=True, slots=True)
class PlaygroundSettings:
    """The setting of the playground."""

    playground: bool = setting(
        True, "Whether there is a playground, the page /_ui/", name="opensearch_ml_stream.playground"
    )

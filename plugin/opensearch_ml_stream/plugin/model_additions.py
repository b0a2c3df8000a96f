"""What extensions add to models: what calls them, members of their `_sidecar`, and streams of their providers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from opensearch_ml_stream.connectors.model_options import NO_OPTIONS, ModelOptions
from opensearch_ml_stream.connectors.selection.presets import PRESETS
from opensearch_ml_stream.connectors.stream_spec import StreamSpec
from opensearch_ml_stream.plugin.connector_protocol import ConnectorProtocol


@dataclass(frozen=True, slots=True)
class ModelAdditions:
    """What all extensions together add; `protocols` fill as these are opened, and are looked into for each model.

    `presets` are the stream specs that a connector's `_llm_interface` can name, ours among them.
    """

    protocols: Sequence[ConnectorProtocol] = ()
    options: ModelOptions = field(default_factory=lambda: NO_OPTIONS)
    presets: Mapping[str, StreamSpec] = field(default_factory=lambda: PRESETS)

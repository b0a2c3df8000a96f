"""What extensions add to models: what calls them, members of their `_sidecar`, and their providers."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from opensearch_ml_stream.connectors.known_providers import SHIPPED, KnownProviders
from opensearch_ml_stream.connectors.model_options import NO_OPTIONS, ModelOptions
from opensearch_ml_stream.plugin.connector_protocol import ConnectorProtocol


@dataclass(frozen=True, slots=True)
class ModelAdditions:
    """What all extensions together add; `protocols` fill as these are opened, and are looked into for each model.

    `providers` are those of this package and of extensions.
    """

    protocols: Sequence[ConnectorProtocol] = ()
    options: ModelOptions = field(default_factory=lambda: NO_OPTIONS)
    providers: KnownProviders = SHIPPED

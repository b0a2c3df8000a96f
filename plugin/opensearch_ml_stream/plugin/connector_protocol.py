"""What extensions add to models: above all connector protocols, which call models that have no provider behind a URL.

An extension contributes one for the models that it runs itself.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from opensearch_ml_stream.connectors.documents import Action, Connector
from opensearch_ml_stream.connectors.known_providers import SHIPPED, KnownProviders
from opensearch_ml_stream.connectors.model_options import NO_OPTIONS, ModelOptions
from opensearch_ml_stream.connectors.predict.inputs import PredictInput
from opensearch_ml_stream.connectors.predict.model_inputs import ModelInputs
from opensearch_ml_stream.connectors.predict.pre_process import Step
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.connectors.stream_spec import Streaming
from opensearch_ml_stream.plugin.upstream import UpstreamResponse

NextRequest = Callable[[], Awaitable[bytes | None]]
"""Returns the body of a stream's next request, None if there are no more; it may wait for a client."""


class ModelAction(Protocol):
    """An action that requests are made of: compiled from a connector's templates, or a protocol's own."""

    @property
    def action(self) -> Action:
        """The action as the connector has it."""
        ...

    def render(self, request: Mapping[str, str], stream: Streaming | None = None) -> ProviderRequest:
        """Return the request for a caller's parameters, that of a stream if it is given; InvalidRequest for others."""
        ...


class OwnRequests(Protocol):
    """How the requests of a model are made and its streams read; it stands in for the templates and the stream spec."""

    @property
    def spec(self) -> Streaming:
        """How its streams are decoded."""
        ...

    @property
    def inputs(self) -> ModelInputs:
        """The parameters that its requests are made of."""
        ...

    def action(self, action_type: str) -> ModelAction:
        """Return an action; InvalidRequest if the model has none of that type."""
        ...

    def steps(self, predict_input: PredictInput) -> Sequence[Step]:
        """Return the calls of a whole prediction, in the order of their results."""
        ...

    def readable_text(self, body: bytes) -> str:
        """Return a request's body as guardrails read it: no text in it may pass them unseen."""
        ...


class ModelProtocol(Protocol):
    """How one model is called and loaded; it stands in for the provider."""

    @property
    def own_requests(self) -> OwnRequests | None:
        """How its requests are made; None where the connector says it, as it does of a provider's."""
        ...

    def open(
        self, request: ProviderRequest, further: NextRequest | None = None
    ) -> AbstractAsyncContextManager[UpstreamResponse]:
        """Call the model, as `Upstream.open` calls a provider; `further` gives the further requests of a stream."""
        ...

    async def load(self) -> None:
        """Load the model as it is now, loaded or not, since it is deployed; UpstreamError if it cannot be."""
        ...

    async def ensure(self) -> None:
        """Load the model, if it is not; raises what `load` does."""
        ...

    async def unload(self) -> None:
        """Unload the model, if it is loaded."""
        ...


class ConnectorProtocol(Protocol):
    """Knows its models by their ids and connectors."""

    def find(self, model_id: str, connector: Connector) -> ModelProtocol | None:
        """Return how a model is called, None for any other.

        The id has to tell, too: anybody may write any URL into a connector of their own.
        """
        ...


@dataclass(frozen=True, slots=True)
class ModelAdditions:
    """What all extensions together add; `protocols` fill as these are opened, and are looked into for each model.

    `providers` are those of this package and of extensions.
    """

    protocols: Sequence[ConnectorProtocol] = ()
    options: ModelOptions = field(default_factory=lambda: NO_OPTIONS)
    providers: KnownProviders = SHIPPED


def find_protocol(
    protocols: Iterable[ConnectorProtocol], model_id: str, connector: Connector | None
) -> ModelProtocol | None:
    """Return how a model is called, None for a remote one; `connector` is None where it is not the model's own."""
    if connector is None:
        return None
    return next((found for one in protocols if (found := one.find(model_id, connector)) is not None), None)


def find_own_requests(
    protocols: Iterable[ConnectorProtocol], model_id: str, connector: Connector
) -> OwnRequests | None:
    """Return how a model's requests are made where its connector does not say it, None where it does."""
    protocol = find_protocol(protocols, model_id, connector)
    return None if protocol is None else protocol.own_requests

"""What extensions add to models, above all connector protocols: they call models that have no provider behind a URL.

An extension contributes a protocol for the models that it runs itself.
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
"""Returns the body of a stream's next request, None if there is none; it may wait for the client."""


class ModelAction(Protocol):
    """An action of a model, which makes requests: a connector's compiled templates, or a protocol's own."""

    @property
    def action(self) -> Action:
        """The action as the connector has it."""
        ...

    def render(self, request: Mapping[str, str], stream: Streaming | None = None) -> ProviderRequest:
        """Return the request for a caller's parameters, for a stream if given; InvalidRequest if they are wrong."""
        ...


class OwnRequests(Protocol):
    """Makes the requests of a model and reads its streams, instead of a connector's templates and stream spec."""

    @property
    def spec(self) -> Streaming:
        """How its streams are decoded."""
        ...

    @property
    def inputs(self) -> ModelInputs:
        """The parameters from which its requests are made."""
        ...

    def action(self, action_type: str) -> ModelAction:
        """Return an action; InvalidRequest if the model has none of that type."""
        ...

    def steps(self, predict_input: PredictInput) -> Sequence[Step]:
        """Return the calls of a whole prediction, in the order of their results."""
        ...

    def readable_text(self, body: bytes) -> str:
        """Return the text of a request's body for guardrails; it must contain all text of the request."""
        ...


class ModelProtocol(Protocol):
    """Calls and loads one model, instead of a provider."""

    @property
    def own_requests(self) -> OwnRequests | None:
        """How its requests are made; None if the connector's templates say it, as for a provider."""
        ...

    def open(
        self, request: ProviderRequest, further: NextRequest | None = None
    ) -> AbstractAsyncContextManager[UpstreamResponse]:
        """Call the model as `Upstream.open` calls a provider; `further` returns further requests of a stream."""
        ...

    async def load(self) -> None:
        """Load the model, again if it is loaded, since it was deployed; UpstreamError if it cannot be loaded."""
        ...

    async def ensure(self) -> None:
        """Load the model if it is not loaded; UpstreamError as `load`."""
        ...

    async def unload(self) -> None:
        """Unload the model, if it is loaded."""
        ...


class ConnectorProtocol(Protocol):
    """Finds the models that an extension runs."""

    def find(self, model_id: str, connector: Connector) -> ModelProtocol | None:
        """Return the protocol of a model of the extension, None for any other model.

        It must check the id, too: users can write any URL into a connector of their own.
        """
        ...


@dataclass(frozen=True, slots=True)
class ModelAdditions:
    """What all extensions together add to models; `protocols` grows while extensions are opened.

    `providers` are those of this package and of extensions.
    """

    protocols: Sequence[ConnectorProtocol] = ()
    options: ModelOptions = field(default_factory=lambda: NO_OPTIONS)
    providers: KnownProviders = SHIPPED


def find_protocol(
    protocols: Iterable[ConnectorProtocol], model_id: str, connector: Connector | None
) -> ModelProtocol | None:
    """Return the protocol of a model, None for a remote one. `connector` is None if the model has none of its own."""
    if connector is None:
        return None
    return next((found for one in protocols if (found := one.find(model_id, connector)) is not None), None)


def find_own_requests(
    protocols: Iterable[ConnectorProtocol], model_id: str, connector: Connector
) -> OwnRequests | None:
    """Return how a model's requests are made, None if its connector's templates say it."""
    protocol = find_protocol(protocols, model_id, connector)
    return None if protocol is None else protocol.own_requests

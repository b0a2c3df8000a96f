"""A runtime's action: what a connector's compiled action is to a provider, without templates and credentials."""

from collections.abc import Mapping
from dataclasses import dataclass

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.connectors.stream_spec import Streaming
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_request import request_body

_NO_HEADERS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class RuntimeAction:
    """The action of a connector whose URL is a runtime's. `parameters` are the connector's, under the request's."""

    action: Action
    parameters: Mapping[str, str]

    def render(self, request: Mapping[str, str], stream: Streaming | None = None) -> ProviderRequest:
        """Return the call of `predict`, or of `predict_stream` if `stream` is given.

        InvalidRequest for parameters of which no inference request can be made.
        """
        parameters = {**self.parameters, **request} if self.parameters else request
        method = "predict" if stream is None else "predict_stream"
        return ProviderRequest("POST", f"{self.action.url}/{method}", _NO_HEADERS, request_body(parameters))

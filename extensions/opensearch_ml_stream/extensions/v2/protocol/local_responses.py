"""Responses of local models, which run on this server: names, ids, tensors and parameters are passed on.

As in MLServer, headers among the parameters become headers of the HTTP response.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidBody, InvalidRequest, UpstreamError
from opensearch_ml_stream.connectors.syntax.jsontext import to_json
from opensearch_ml_stream.extensions.v2.protocol.json_requests import Dialect, read_tensor
from opensearch_ml_stream.extensions.v2.protocol.json_responses import response_body
from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceResponse, ResponseShape, Tensor
from opensearch_ml_stream.extensions.v2.protocol.request_members import as_list

_HEADERS = "headers"
_Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LocalResponse:
    """A whole response of a local model as it wrote it, `body`; `shape` has defaults for what it lacks."""

    shape: ResponseShape
    body: _Object

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that the runtime has set."""
        headers = _parameters(self.body).get(_HEADERS)
        return _texts(headers) if isinstance(headers, dict) else {}

    def encoded(self, dialect: Dialect) -> bytes:
        """Encode the response without its headers, as it is in its own dialect. UpstreamError as `read`."""
        if dialect is Dialect.TEXT:
            return response_body(self.read(), dialect)
        parameters = _parameters(self.body)
        shown = {**self.body, "parameters": _without_headers(parameters)} if _HEADERS in parameters else self.body
        return to_json(shown)

    def read(self) -> InferenceResponse:
        """Return the response with its tensors read, for other forms. UpstreamError if they are not tensors."""
        return read_local_response(self.body, self.shape)


def find_local_response(shape: ResponseShape, prediction: _Object) -> LocalResponse | None:
    """Return the runtime's own response in a whole prediction, None if it has none, as one of a fallback model."""
    outputs = [output for result in prediction["inference_results"] for output in result["output"]]
    body = outputs[0].get("dataAsMap") if len(outputs) == 1 else None
    if not isinstance(body, dict) or not isinstance(body.get("outputs"), list):
        return None
    if "model_id" in prediction:  # of the fallback model that answered
        body = {**body, "parameters": {**_parameters(body), "model_id": prediction["model_id"]}}
    return LocalResponse(_own_shape(body, shape), body)


def read_local_response(body: _Object, shape: ResponseShape) -> InferenceResponse:
    """Return the response in a runtime's JSON. UpstreamError if its outputs are not tensors."""
    outputs = read_outputs(body.get("outputs"))
    return InferenceResponse(_own_shape(body, shape), outputs, _without_headers(_parameters(body)))


def read_outputs(outputs: Any) -> Sequence[Tensor]:
    """Return a runtime's outputs in JSON as tensors. UpstreamError for anything else."""
    try:
        return [read_tensor(output, ("outputs", place)) for place, output in enumerate(as_list(outputs, ("outputs",)))]
    except (InvalidBody, InvalidRequest) as error:
        raise UpstreamError(f"The runtime's response is not one of the V2 protocol: {error.reason}") from None


def _own_shape(body: _Object, shape: ResponseShape) -> ResponseShape:
    name, version, id = body.get("model_name"), body.get("model_version"), body.get("id")
    return replace(
        shape,
        model_name=name if isinstance(name, str) else shape.model_name,
        model_version=version if isinstance(version, str) else None,
        id=id if isinstance(id, str) else shape.id,
    )


def _parameters(body: _Object) -> _Object:
    parameters = body.get("parameters")
    return parameters if isinstance(parameters, dict) else {}


def _without_headers(parameters: _Object) -> _Object:
    return {name: value for name, value in parameters.items() if name != _HEADERS}


def _texts(headers: _Object) -> Mapping[str, str]:
    return {name: value for name, value in headers.items() if isinstance(value, str)}

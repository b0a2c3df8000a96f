"""The operations of `/v2`, for its OpenAPI documents."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from opensearch_ml_stream.extensions.v2.extension import V2_PATH
from opensearch_ml_stream.extensions.v2.http.documentation.inference_schemas import inlined, ref
from opensearch_ml_stream.rest_handlers.operation_description import OperationDescription, Schema

_STREAMED = (
    "Server-sent events, each `data: ` with a response as JSON, then a blank line. The last response alone has a "
    '`finish_reason` in its parameters. A stream that fails ends with an event `{"error": ...}`.'
)


VERSION = "/versions/{model_version}"
_MODEL = "/models/{model_name}"


@dataclass(frozen=True, slots=True)
class V2Operation:
    """An operation. `path` is below `/v2`; an operation of a model also has a path with the version.

    `response` is the schema of the body, or of each event if `is_stream`; None if there is no body. `example` is the
    kind of the example request; requests of both kinds are accepted on every path.
    """

    group: str
    method: Literal["get", "post"]
    path: str
    summary: str
    description: str = ""
    body: Schema | None = None
    response: Schema | None = None
    is_stream: bool = False
    example: Literal["tensors", "text"] | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """Its path, and the path with a version if there is one."""
        path = V2_PATH + self.path
        return (path, path.replace(_MODEL, _MODEL + VERSION)) if self.path.startswith(_MODEL) else (path,)

    def describe(self) -> OperationDescription:
        """Return its description in the OpenAPI document of all routes."""
        return OperationDescription(
            self.summary + ".",
            body=None if self.body is None else inlined(self.body),
            is_body_required=self.example is not None,
            content_types=("text/event-stream",) if self.is_stream else ("application/json",) if self.response else (),
            response={} if self.response is None else inlined(self.response),
            is_of_ml_commons=False,
        )


_REQUEST: Schema = {"anyOf": [ref("InferenceRequest"), ref("GenerateRequest")]}
_RESPONSE: Schema = {"anyOf": [ref("InferenceResponse"), ref("GenerateResponse")]}
_REPOSITORY = "Model repository"


def _inference(name: str, summary: str, description: str, example: Literal["tensors", "text"]) -> V2Operation:
    is_stream = name.endswith("_stream")
    return V2Operation(
        "Inference", "post", f"{_MODEL}/{name}", summary, description, _REQUEST, _RESPONSE, is_stream, example
    )


OPERATIONS = (
    _inference("infer", "Infer", "The whole response at once.", "tensors"),
    _inference("infer_stream", "Infer, and stream the response", _STREAMED, "tensors"),
    _inference("generate", "Generate", "The same as infer.", "text"),
    _inference("generate_stream", "Generate, and stream the response", "The same as infer_stream.", "text"),
    V2Operation("Models", "get", _MODEL, "Model metadata", response=ref("MetadataModelResponse")),
    V2Operation(
        "Models", "get", f"{_MODEL}/ready", "Whether the model can be called", response=ref("ModelReadyResponse")
    ),
    V2Operation("Server", "get", "", "Server metadata", response=ref("MetadataServerResponse")),
    V2Operation("Server", "get", "/health/live", "Whether the server is alive", response=ref("ServerLiveResponse")),
    V2Operation(
        "Server", "get", "/health/ready", "Whether the server can be called", response=ref("ServerReadyResponse")
    ),
    V2Operation(
        _REPOSITORY,
        "post",
        "/repository/index",
        "List the models that there are",
        body=ref("RepositoryIndexRequest"),
        response=ref("RepositoryIndexResponse"),
    ),
    V2Operation(_REPOSITORY, "post", "/repository/models/{model_name}/load", "Deploy a model"),
    V2Operation(_REPOSITORY, "post", "/repository/models/{model_name}/unload", "Undeploy a model"),
)


V2_OPERATIONS: Mapping[str, Mapping[str, OperationDescription]] = {
    path: {operation.method.upper(): operation.describe()} for operation in OPERATIONS for path in operation.paths
}
"""The descriptions of `/v2` in the OpenAPI document of all routes, without its documentation pages."""

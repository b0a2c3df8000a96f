"""The table of rights, first half: what each route and each gRPC method needs. One without a row fails the tests.

Actions have the names of ML Commons' transport actions (3.6.0), not read from our code.
"""

BASE = "/_plugins/_ml"
_ML = "cluster:admin/opensearch/ml/"
_MONITOR = "cluster:monitor/"

Needs = tuple[str, ...]
"""Actions of which a caller must be allowed one; a refusal names the first."""


class AllOf(tuple[str, ...]):
    """Actions of which a caller must be allowed all; a refusal names the first that is not."""

    __slots__ = ()


LOGIN: Needs = ()
"""Whoever logged in."""

EVERYONE = None
"""Whoever asks; for the metrics, whoever asks on this machine."""

_NEEDS_BELOW_BASE: dict[str, Needs] = {
    "POST /models/{model_id}/_predict/stream": (_ML + "predict/stream", _ML + "predict"),
    "POST /models/{model_id}/_predict": (_ML + "predict",),
    "POST /_predict/{algorithm}/{model_id}": (_ML + "predict",),
    "POST /models/{model_id}/_batch_predict": (_ML + "predict",),
    "POST /models/{id}/_diagnose": AllOf((_ML + "predict", _ML + "connectors/get")),
    "POST /connectors/_create": (_ML + "create_connector",),
    "GET /connectors/_search": (_ML + "connectors/search",),
    "POST /connectors/_search": (_ML + "connectors/search",),
    "GET /connectors/{id}": (_ML + "connectors/get",),
    "PUT /connectors/{id}": (_ML + "connectors/update",),
    "DELETE /connectors/{id}": (_ML + "connectors/delete",),
    "POST /models/_register": (_ML + "register_model",),
    "POST /models/_upload": (_ML + "register_model",),
    "POST /models/{id}/{version}/_register": (_ML + "register_model",),
    "POST /models/{id}/{version}/_upload": (_ML + "register_model",),
    "GET /models/_search": (_ML + "models/search",),
    "POST /models/_search": (_ML + "models/search",),
    "POST /models/_undeploy": (_ML + "undeploy_models",),
    "POST /models/_unload": (_ML + "undeploy_models",),
    "POST /models/{id}/_deploy": (_ML + "deploy_model",),
    "POST /models/{id}/_load": (_ML + "deploy_model",),
    "POST /models/{id}/_undeploy": (_ML + "undeploy_models",),
    "POST /models/{id}/_unload": (_ML + "undeploy_models",),
    "GET /models/{id}": (_ML + "models/get",),
    "PUT /models/{id}": (_ML + "models/update",),
    "DELETE /models/{id}": (_ML + "models/delete",),
    "POST /model_groups/_register": (_ML + "register_model_group",),
    "GET /model_groups/_search": (_ML + "model_groups/search",),
    "POST /model_groups/_search": (_ML + "model_groups/search",),
    "GET /model_groups/{id}": (_ML + "model_groups/get",),
    "PUT /model_groups/{id}": (_ML + "update_model_group",),
    "DELETE /model_groups/{id}": (_ML + "model_groups/delete",),
    "GET /tasks/_search": (_ML + "tasks/search",),
    "POST /tasks/_search": (_ML + "tasks/search",),
    "POST /tasks/{id}/_cancel": (_ML + "tasks/cancel",),
    "POST /tasks/{id}/_cancel_batch": (_ML + "tasks/cancel",),
    "GET /tasks/{id}": (_ML + "tasks/get",),
    "DELETE /tasks/{id}": (_ML + "tasks/delete",),
    "POST /controllers/{id}": (_ML + "controllers/create",),
    "GET /controllers/{id}": (_ML + "controllers/get",),
    "PUT /controllers/{id}": (_ML + "controllers/update",),
    "DELETE /controllers/{id}": (_ML + "controllers/delete",),
    "GET /config/{id}": (_ML + "config/get",),
    "GET /profile/models/{id}": (_ML + "profile/nodes",),
    "GET /profile/models": (_ML + "profile/nodes",),
    "GET /profile/tasks/{id}": (_ML + "profile/nodes",),
    "GET /profile/tasks": (_ML + "profile/nodes",),
    "GET /profile": (_ML + "profile/nodes",),
    "GET /stats/{stat}": (_ML + "stats/nodes",),
    "GET /stats": (_ML + "stats/nodes",),
    "GET /{node_id}/stats/{stat}": (_ML + "stats/nodes",),
    "GET /{node_id}/stats": (_ML + "stats/nodes",),
    "GET /_settings": (_MONITOR + "settings",),
    "PUT /_settings": ("cluster:admin/settings/update",),
    "GET /openapi.json": LOGIN,
}

_STREAM: Needs = (_ML + "predict/stream", _ML + "predict")
_READY: Needs = (_ML + "models/get", _ML + "predict", _ML + "predict/stream")
"""Who may call a model finds out whether it is ready by calling it."""

_LISTED: Needs = (_ML + "models/search", _ML + "models/get", *_STREAM)
"""Clients of OpenAI's API ask which models there are before they call one."""


def _of_v2_model(path: str) -> dict[str, Needs]:
    return {
        f"GET {path}": (_ML + "models/get",),
        f"GET {path}/ready": _READY,
        f"GET {path}/docs": (_ML + "models/get",),
        f"GET {path}/docs/dataplane.json": (_ML + "models/get",),
        f"POST {path}/infer": (_ML + "predict",),
        f"POST {path}/generate": (_ML + "predict",),
        f"POST {path}/infer_stream": _STREAM,
        f"POST {path}/generate_stream": _STREAM,
    }


ROUTES: dict[str, Needs | None] = {
    **{row.replace(" ", f" {BASE}", 1): needs for row, needs in _NEEDS_BELOW_BASE.items()},
    "GET /": LOGIN,
    "GET /_health/live": EVERYONE,
    "GET /_health/ready": EVERYONE,
    "GET /metrics": EVERYONE,
    "GET /v2": LOGIN,
    "GET /v2/docs": LOGIN,
    "GET /v2/docs/dataplane.json": LOGIN,
    "GET /v2/health/live": EVERYONE,
    "GET /v2/health/ready": EVERYONE,
    "POST /v2/repository/index": (_ML + "models/search",),
    "POST /v2/repository/models/{model_name}/load": (_ML + "deploy_model",),
    "POST /v2/repository/models/{model_name}/unload": (_ML + "undeploy_models",),
    **_of_v2_model("/v2/models/{model_name}"),
    **_of_v2_model("/v2/models/{model_name}/versions/{model_version}"),
    "POST /v1/messages": _STREAM,
    "POST /v1/messages/count_tokens": _STREAM,
    "POST /generate-stream": _STREAM,
    "GET /generate-stream": _STREAM,
    "GET /generate-stream/{file}": _STREAM,
    "POST /v1/chat/completions": _STREAM,
    "POST /v1/completions": _STREAM,
    "POST /v1/embeddings": (_ML + "predict",),
    "POST /v1/responses": _STREAM,
    "POST /v1/responses/input_tokens": _STREAM,
    "GET /v1/responses/{response_id}": _STREAM,
    "DELETE /v1/responses/{response_id}": _STREAM,
    "GET /v1/models": _LISTED,
    "GET /v1/models/{name}": _LISTED,
}
"""What each route of the API needs."""

PLAYGROUND_ROUTES: dict[str, Needs] = {
    "GET /_ui": LOGIN,
    "GET /_ui/": (_ML + "models/search", _ML + "predict", _ML + "predict/stream"),
    "GET /_ui/static/{file}": LOGIN,
    "GET /_ui/user": LOGIN,
    "GET /_ui/logout": LOGIN,
    "GET /_ui/models": (_ML + "models/search",),
    "GET /_ui/models/{id}": (_ML + "models/get",),
    "DELETE /_ui/models/{id}": (_ML + "undeploy_models",),
    "GET /_ui/models/{id}/settings": (_ML + "models/get",),
    "PUT /_ui/models/{id}/settings": (_ML + "models/update",),
    "POST /_ui/servers": ("cluster:admin/settings/update",),
    "GET /_ui/blueprints": (_ML + "create_connector",),
    "POST /_ui/blueprints/{name}": (_ML + "register_model",),
    "GET /_ui/statistics": (_ML + "stats/nodes",),
}
"""What each route of the playground needs, of what needs two actions the first: no OpenAPI document has these."""

CALLS: dict[str, Needs | None] = {
    "inference.GRPCInferenceService/ServerLive": EVERYONE,
    "inference.GRPCInferenceService/ServerReady": EVERYONE,
    "inference.GRPCInferenceService/ServerMetadata": LOGIN,
    "inference.GRPCInferenceService/ModelReady": _READY,
    "inference.GRPCInferenceService/ModelMetadata": (_ML + "models/get",),
    "inference.GRPCInferenceService/ModelInfer": (_ML + "predict",),
    "inference.GRPCInferenceService/ModelStreamInfer": _STREAM,
    "inference.GRPCInferenceService/RepositoryIndex": (_ML + "models/search",),
    "inference.GRPCInferenceService/RepositoryModelLoad": (_ML + "deploy_model",),
    "inference.GRPCInferenceService/RepositoryModelUnload": (_ML + "undeploy_models",),
    "inference.model_repository.ModelRepositoryService/RepositoryIndex": (_ML + "models/search",),
    "inference.model_repository.ModelRepositoryService/RepositoryModelLoad": (_ML + "deploy_model",),
    "inference.model_repository.ModelRepositoryService/RepositoryModelUnload": (_ML + "undeploy_models",),
    "org.opensearch.protobufs.services.MLService/PredictModelStream": _STREAM,
    "grpc.health.v1.Health/Check": EVERYONE,
    "grpc.health.v1.Health/List": EVERYONE,
    "grpc.health.v1.Health/Watch": EVERYONE,
    "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": LOGIN,
}
"""What each method of the gRPC port needs."""

ALL_OF_ML = {action for needs in ROUTES.values() for action in needs or () if action.startswith(_ML)}
READ_OF_ML = {action for action in ALL_OF_ML if action.endswith(("/get", "/search", "/nodes"))}
MONITOR = {_MONITOR + "settings"}
SETTINGS = {"cluster:admin/settings/update"}
PREDICT = {_ML + "predict", _ML + "predict/stream"}
STREAM = {_ML + "predict/stream"}

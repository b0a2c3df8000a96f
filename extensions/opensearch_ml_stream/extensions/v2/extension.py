"""The declaration of the V2 protocol."""

import re

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.model_options import InputOptions, ModelOption, members_of
from opensearch_ml_stream.extensions.v2.settings import V2Settings
from opensearch_ml_stream.plugin.extension import PLAIN_ERRORS, Extension

V2_PATH = "/v2"


_PARAMETER_NAME = re.compile(r"[^\s{}:]{1,512}")  # as placeholders have them


def _read_option(value: object) -> InputOptions:
    """Read the member `v2` of a model's `_sidecar`: the parameter of its templates that a text goes to."""
    prompt = members_of(value, "_sidecar.v2", InputOptions).get("prompt")
    if prompt is not None and not (isinstance(prompt, str) and _PARAMETER_NAME.fullmatch(prompt)):
        raise InvalidRequest("_sidecar.v2.prompt must be the name of a parameter in the connector's template")
    return InputOptions(prompt)


EXTENSION = Extension(
    name="v2",
    summary="The V2 protocol (Open Inference Protocol) over REST and gRPC, for clients of MLServer, KServe and Triton.",
    open="opensearch_ml_stream.extensions.v2.opening:open_v2",
    face="opensearch_ml_stream.extensions.v2.face",
    model_options={"v2": ModelOption(InputOptions, _read_option)},
    paths=(V2_PATH,),
    error_form=PLAIN_ERRORS,
    settings=V2Settings,
    services=(
        "opensearch_ml_stream.extensions.v2.grpc.inference_service:make_service",
        "opensearch_ml_stream.extensions.v2.grpc.repository_service:make_service",
    ),
)

"""The declaration of the V2 protocol, with its settings."""

import re
from dataclasses import dataclass

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.model_options import InputOptions, ModelOption, members_of
from opensearch_ml_stream.plugin.extension import PLAIN_ERRORS, Extension
from opensearch_ml_stream.plugin.settings.setting_metadata import setting

V2_PATH = "/v2"
AUTO, TRITON = "auto", "triton"
_PARAMETER_NAME = re.compile(r"[^\s{}:]{1,512}")  # as placeholders have them


@dataclass(frozen=True, slots=True)
class V2Settings:
    """The settings of `/v2` and of the gRPC service."""

    gzip: bool = setting(
        True,
        "Compress what /v2 sends to clients that accept gzip, streams event by event",
        name="opensearch_ml_stream.v2.gzip",
    )
    grpc_stream_response: str = setting(
        AUTO,
        "Message of a stream over gRPC for clients that do not show that they are Triton's: ModelInferResponse "
        "(mlserver), ModelStreamInferResponse (triton), or this if the first request has raw contents without a "
        "content type (auto)",
        name="opensearch_ml_stream.grpc_stream_response",
        choices=(AUTO, "mlserver", TRITON),
    )


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

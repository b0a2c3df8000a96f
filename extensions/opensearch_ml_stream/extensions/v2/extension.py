"""The declaration of the V2 protocol."""

from opensearch_ml_stream.extensions.v2.paths import V2_PATH
from opensearch_ml_stream.extensions.v2.prompt_option import V2_OPTION
from opensearch_ml_stream.extensions.v2.settings import V2Settings
from opensearch_ml_stream.plugin.extension import PLAIN_ERRORS, Extension

EXTENSION = Extension(
    name="v2",
    summary="The V2 protocol (Open Inference Protocol) over REST and gRPC, for clients of MLServer, KServe and Triton.",
    open="opensearch_ml_stream.extensions.v2.opening:open_v2",
    face="opensearch_ml_stream.extensions.v2.face",
    model_options={"v2": V2_OPTION},
    paths=(V2_PATH,),
    error_form=PLAIN_ERRORS,
    settings=V2Settings,
    services=(
        "opensearch_ml_stream.extensions.v2.grpc.inference_service:make_service",
        "opensearch_ml_stream.extensions.v2.grpc.repository_service:make_service",
    ),
)

"""Settings of the V2 protocol over HTTP and gRPC."""

from dataclasses import dataclass

from opensearch_ml_stream.plugin.settings.setting_metadata import setting

AUTO, TRITON = "auto", "triton"


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

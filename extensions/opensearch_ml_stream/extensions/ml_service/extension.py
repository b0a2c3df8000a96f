"""The declaration of MLService, ML Commons' gRPC API."""

from opensearch_ml_stream.plugin.extension import Extension

EXTENSION = Extension(
    name="ml_service",
    summary="MLService, the gRPC API of ML Commons (3.6): streamed and whole predictions on the gRPC port.",
    services=("opensearch_ml_stream.extensions.ml_service.ml_service:make_service",),
)

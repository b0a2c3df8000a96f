"""Errors for features that a setting has disabled, in ML Commons' words."""

from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest


def remote_inference_disabled() -> InvalidRequest:
    """Return the error for a call of a remote model."""
    return InvalidRequest(
        "Remote Inference is currently disabled. To enable it, update the setting "
        '"plugins.ml_commons.remote_inference.enabled" to true.',
        type="status_exception",
    )


def streaming_disabled() -> Forbidden:
    """Return the error for `_predict/stream`."""
    return Forbidden(
        'Streaming is currently disabled. To enable it, update the setting "plugins.ml_commons.stream_enabled" to true.'
    )


def batch_inference_disabled() -> Forbidden:
    """Return the error for `_batch_predict`."""
    return Forbidden(
        "Offline batch inference is currently disabled. To enable it, update the setting "
        '"plugins.ml_commons.offline_batch_inference_enabled" to true.'
    )

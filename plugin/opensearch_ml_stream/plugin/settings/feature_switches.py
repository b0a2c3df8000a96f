"""The errors that callers get while a setting switches a feature off, as ML Commons words them."""

from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest


def remote_inference_disabled() -> InvalidRequest:
    """Remote models are switched off."""
    return InvalidRequest(
        "Remote Inference is currently disabled. To enable it, update the setting "
        '"plugins.ml_commons.remote_inference.enabled" to true.',
        type="status_exception",
    )


def streaming_disabled() -> Forbidden:
    """`_predict/stream` is switched off."""
    return Forbidden(
        'Streaming is currently disabled. To enable it, update the setting "plugins.ml_commons.stream_enabled" to true.'
    )


def batch_inference_disabled() -> Forbidden:
    """`_batch_predict` is switched off."""
    return Forbidden(
        "Offline batch inference is currently disabled. To enable it, update the setting "
        '"plugins.ml_commons.offline_batch_inference_enabled" to true.'
    )

"""Errors for features that a setting has disabled, in ML Commons' words."""

from opensearch_ml_stream.connectors.errors import FeatureDisabled, Forbidden


def remote_inference_disabled() -> FeatureDisabled:
    """Return the error for a call of a remote model."""
    return FeatureDisabled(
        "Remote Inference is currently disabled. To enable it, update the setting "
        '"plugins.ml_commons.remote_inference.enabled" to true.'
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

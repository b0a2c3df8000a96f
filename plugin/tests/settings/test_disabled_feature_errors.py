"""What a caller is told while a feature is disabled, in ML Commons' words."""

from opensearch_ml_stream.plugin.settings import (
    Settings,
    batch_inference_disabled,
    remote_inference_disabled,
    streaming_disabled,
)


def test_each_error_names_the_setting_that_enables_the_feature() -> None:
    remote, stream, batch = remote_inference_disabled(), streaming_disabled(), batch_inference_disabled()
    assert (remote.status, remote.type, remote.reason) == (
        400,
        "status_exception",
        "Remote Inference is currently disabled. To enable it, update the setting "
        '"plugins.ml_commons.remote_inference.enabled" to true.',
    )
    assert (stream.status, stream.reason) == (
        403,
        "Streaming is currently disabled. To enable it, update the setting "
        '"plugins.ml_commons.stream_enabled" to true.',
    )
    assert (batch.status, batch.reason) == (
        403,
        "Offline batch inference is currently disabled. To enable it, update the setting "
        '"plugins.ml_commons.offline_batch_inference_enabled" to true.',
    )
    for error in (remote, stream, batch):
        assert error.reason.split('"')[1] in Settings().definitions()

"""What a caller is told while a feature is disabled, in ML Commons' words."""

from collections.abc import Callable

import pytest

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.plugin.settings import Settings


@pytest.mark.parametrize(
    ("settings", "check", "status", "type", "reason"),
    [
        (Settings(remote_inference_enabled=False), Settings.check_remote_inference, 400, "status_exception",
         'Remote Inference is currently disabled. To enable it, update the setting '
         '"plugins.ml_commons.remote_inference.enabled" to true.'),
        (Settings(stream_enabled=False), Settings.check_streaming, 403, "status_exception",
         'Streaming is currently disabled. To enable it, update the setting '
         '"plugins.ml_commons.stream_enabled" to true.'),
        (Settings(offline_batch_inference_enabled=False), Settings.check_batch_inference, 403, "status_exception",
         'Offline batch inference is currently disabled. To enable it, update the setting '
         '"plugins.ml_commons.offline_batch_inference_enabled" to true.'),
    ],
)  # fmt: skip
def test_each_error_names_the_setting_that_enables_the_feature(
    settings: Settings, check: Callable[[Settings], None], status: int, type: str, reason: str
) -> None:
    check(Settings())
    with pytest.raises(MLStreamError) as caught:
        check(settings)
    assert (caught.value.status, caught.value.type, caught.value.reason) == (status, type, reason)
    assert reason.split('"')[1] in Settings().definitions()

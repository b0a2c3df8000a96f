"""The demo's sidecar trusts the demo's provider, and nothing else that it did not trust before."""

import pytest

from opensearch_ml_stream.plugin.cli.demo_command import trust_provider
from opensearch_ml_stream.plugin.settings import DEFAULT_TRUSTED_ENDPOINTS, Settings

PROVIDER = r"^http://127\.0\.0\.1:9519/.*$"
OWN = "^http://10.0.0.1/.*$"


def test_only_the_providers_port_is_added() -> None:
    settings = trust_provider(Settings(), "http://127.0.0.1:9519")
    assert settings.trusted_connector_endpoints_regex == (*DEFAULT_TRUSTED_ENDPOINTS, PROVIDER)
    assert settings.trusted_connector_private_endpoints_regex == (PROVIDER,)
    assert settings.private_ip_enabled


@pytest.mark.parametrize(
    ("enabled", "before", "after"),
    [
        (True, (), ()),  # all private addresses were allowed, and stay so
        (True, (OWN,), (OWN, PROVIDER)),
        (False, (OWN,), (PROVIDER,)),  # without effect before, so without effect still
    ],
)
def test_what_the_operator_allows_stays_allowed(enabled: bool, before: tuple[str, ...], after: tuple[str, ...]) -> None:
    own = Settings(private_ip_enabled=enabled, trusted_connector_private_endpoints_regex=before)
    assert trust_provider(own, "http://127.0.0.1:9519").trusted_connector_private_endpoints_regex == after

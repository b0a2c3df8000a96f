"""What is prepared for a call serves the calls that differ from it in their body only, and none other."""

from dataclasses import replace

import pytest

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.upstream.http1.prepared_requests import PreparedRequest, PreparedRequests

CONFIG = ClientConfig()
REQUEST = ProviderRequest("POST", "https://provider.example/v1", {"Authorization": "Bearer one", "X-A": "a"}, b"{}")
MAX_PREPARED = 256
MAX_KEPT_HEAD_BYTES = 8_192


def prepared(
    calls: PreparedRequests, request: ProviderRequest = REQUEST, config: ClientConfig = CONFIG
) -> PreparedRequest:
    return calls.get(request, config, {}, "connector")


def test_a_call_that_differs_in_its_body_only_is_prepared_already() -> None:
    calls = PreparedRequests(LiveSettings(Settings()), {})
    first = prepared(calls)
    assert first.head == (
        b"POST /v1 HTTP/1.1\r\nHost: provider.example\r\nAuthorization: Bearer one\r\nX-A: a\r\n"
        b"Accept-Encoding: identity"
    )
    assert prepared(calls, replace(REQUEST, headers=dict(REQUEST.headers), body=b"[]")) is first


@pytest.mark.parametrize(
    ("other", "head"),
    [
        (replace(REQUEST, method="PUT"), b"PUT /v1 "),
        (replace(REQUEST, url="https://provider.example/v2"), b"POST /v2 "),
        (replace(REQUEST, headers={"Authorization": "Bearer two", "X-A": "a"}), b"\r\nAuthorization: Bearer two\r\n"),
        (replace(REQUEST, headers={"Authorization": "Bearer one"}), b"\r\nAuthorization: Bearer one\r\nAccept"),
        (replace(REQUEST, headers={"X-A": "a", "Authorization": "Bearer one"}), b"\r\nX-A: a\r\nAuthorization"),
    ],
)
def test_every_other_request_has_a_head_of_its_own(other: ProviderRequest, head: bytes) -> None:
    calls = PreparedRequests(LiveSettings(Settings()), {})
    first = prepared(calls)
    assert head in prepared(calls, other).head
    assert prepared(calls) is first


def test_a_connection_is_for_one_connector() -> None:
    calls = PreparedRequests(LiveSettings(Settings()), {})
    routes = [calls.get(REQUEST, CONFIG, {}, key).route.pool_key for key in ("one", "another", "one")]
    assert routes == ["one", "another", "one"]


def test_a_changed_config_counts_from_the_next_call_on() -> None:
    calls = PreparedRequests(LiveSettings(Settings()), {})
    prepared(calls)
    changed = replace(CONFIG, skip_ssl_verification=True, read_timeout=1)
    call = prepared(calls, config=changed)
    assert (call.config, call.route.tls) == (changed, (True, "", ()))
    assert prepared(calls).route.tls == (False, "", ())


def test_changed_settings_count_from_the_next_call_on() -> None:
    live = LiveSettings(Settings())
    calls = PreparedRequests(live, {})
    assert not prepared(calls).route.policy.private_allowed
    live.current = Settings(private_ip_enabled=True)
    assert prepared(calls).route.policy.private_allowed


def test_a_changed_client_certificate_counts_from_the_next_call_on() -> None:
    calls = PreparedRequests(LiveSettings(Settings()), {})
    config = replace(CONFIG, mutual_tls_enabled=True)
    certificates = [calls.get(REQUEST, config, {"client_cert_pem": pem}, "c").route.tls[2] for pem in ("one", "two")]
    assert certificates == [(("client_cert_pem", "one"),), (("client_cert_pem", "two"),)]


def test_a_changed_authority_counts_from_the_next_call_on() -> None:
    calls = PreparedRequests(LiveSettings(Settings()), {})
    authorities = [calls.get(REQUEST, CONFIG, {"ca_cert_pem": pem}, "c").route.tls[2] for pem in ("one", "two")]
    assert authorities == [(("ca_cert_pem", "one"),), (("ca_cert_pem", "two"),)]


def test_calls_that_are_all_different_are_not_all_kept() -> None:
    calls = PreparedRequests(LiveSettings(Settings()), {})
    first = prepared(calls)
    for number in range(MAX_PREPARED - 1):
        prepared(calls, replace(REQUEST, headers={"X-Amz-Date": str(number)}))
    assert prepared(calls) is first
    prepared(calls, replace(REQUEST, headers={"X-Amz-Date": "another"}))
    assert prepared(calls) is not first
    assert prepared(calls) == first


@pytest.mark.parametrize(("size", "is_kept"), [(MAX_KEPT_HEAD_BYTES, True), (MAX_KEPT_HEAD_BYTES + 1, False)])
def test_a_large_head_is_not_kept(size: int, is_kept: bool) -> None:
    calls = PreparedRequests(LiveSettings(Settings()), {})
    length = len(prepared(calls, replace(REQUEST, headers={"X": ""})).head)
    large = replace(REQUEST, headers={"X": "a" * (size - length)})
    assert len(prepared(calls, large).head) == size
    assert (prepared(calls, large) is prepared(calls, large)) is is_kept


def test_what_cannot_be_called_is_refused_each_time() -> None:
    calls = PreparedRequests(LiveSettings(Settings()), {})
    for _ in range(2):
        with pytest.raises(InvalidRequest):
            prepared(calls, replace(REQUEST, headers={"X": "a\r\nb"}))

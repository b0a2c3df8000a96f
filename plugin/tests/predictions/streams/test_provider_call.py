"""One call of a scripted provider: URL, signature, retries, status, errors and size of the response."""

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.documents import read_connector, read_model
from opensearch_ml_stream.connectors.errors import InvalidRequest, Throttled, UpstreamError
from opensearch_ml_stream.connectors.model_options import CallLimits, SidecarSettings
from opensearch_ml_stream.connectors.provider_errors import MAX_ERROR_BYTES
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.clock import now_millis
from opensearch_ml_stream.plugin.limits.budgets import Budgets
from opensearch_ml_stream.plugin.limits.rate_limits import RateLimits
from opensearch_ml_stream.plugin.limits.shared_spending import SharedSpending
from opensearch_ml_stream.plugin.limits.spending_table import SpendingTable
from opensearch_ml_stream.plugin.limits.stream_caps import OpenStreams, StreamCounts
from opensearch_ml_stream.plugin.metrics import Metrics
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.predictions.provider_call import (
    ProviderCalls,
    check_status,
    read_all,
)
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.plugin.upstream import ReadTimedOut
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.predictions.prediction_setup import CHAT_URL, SECRET, connector_body
from tests.predictions.scripted_provider import Response, ScriptedProvider, json_response
from tests.scripted_protocol import OwnModel

REQUEST = ProviderRequest("POST", CHAT_URL, {"X-Own": "1"}, b"{}")
BEDROCK = "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse"
AWS_KEYS = {"access_key": "AKIA1234", "secret_key": "s3cr3t-key"}


def ready(
    document: dict[str, Any] | None = None, model_id: str = "m", own: OwnModel | None = None, **connector: Any
) -> CompiledModel:
    stored = read_connector(connector_body(**connector))
    return CompiledModel(model_id, read_model(document or {}), stored, stored.credential, protocol=own)


def calls_to(provider: ScriptedProvider, folder: Path = Path("unused"), **settings: Any) -> ProviderCalls:
    shared = SharedSpending(SpendingTable(folder / "spending"), SQLiteStore(":memory:"), now_millis, "here")
    budgets = Budgets(shared, print, now_millis)
    live = LiveSettings(Settings(**settings))
    streams = OpenStreams(StreamCounts(folder, 1), live, Metrics(), BackgroundTasks())
    return ProviderCalls(live, provider, RateLimits(folder), budgets, streams)


async def error_of(response: Response, **connector: Any) -> UpstreamError:
    with pytest.raises(UpstreamError) as raised:
        await check_status(response, ready(**connector))
    return raised.value


async def test_every_2xx_status_is_good_and_its_body_is_not_read() -> None:
    for status in (200, 201, 204, 299):
        response = Response([b"body"], status)
        await check_status(response, ready())
        assert response.reads == 0


async def test_an_error_has_the_providers_words_and_status_without_the_credential() -> None:
    said = f"Incorrect API key {SECRET}; header was Bearer abcdefgh12345678"
    words = json.dumps({"error": {"message": said, "code": "invalid_api_key", "param": SECRET}})
    error = await error_of(Response([words[:40].encode(), words[40:].encode()], 401))
    assert error.reason == "Error from remote service: Incorrect API key ***; header was Bearer ***"
    assert (error.status, error.provider_status, error.type) == (424, 401, "status_exception")
    assert error.provider == ("invalid_api_key", None, "***")


@pytest.mark.parametrize(("status", "for_caller"), [(400, 400), (422, 400), (429, 429), (199, 424), (300, 424)])
async def test_a_bad_request_and_throttling_keep_their_status(status: int, for_caller: int) -> None:
    error = await error_of(Response([b"no"], status))
    assert (error.status, error.provider_status) == (for_caller, status)


async def test_a_throttled_response_passes_its_retry_after_on() -> None:
    error = await error_of(Response([b"slow down"], 429, {"retry-after": "9"}))
    assert error.retry_after == "9"
    assert (await error_of(Response([b"slow down"], 429, {"retry-after-ms": "1100"}))).retry_after == "2"
    google = b'[{"error": {"details": [{"@type": "google.rpc.RetryInfo", "retryDelay": "3s"}]}}]'
    assert (await error_of(Response([google], 429))).retry_after == "3"
    assert (await error_of(Response([b"slow down"], 429))).retry_after is None


@pytest.mark.parametrize(
    "value",
    ["0", "120", "Wed, 21 Oct 2015 07:28:00 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"],
)
async def test_every_form_of_retry_after_is_passed_on(value: str) -> None:
    assert (await error_of(Response([b"slow down"], 429, {"retry-after": value}))).retry_after == value


@pytest.mark.parametrize("value", [SECRET, f"120, {SECRET}", "soon", "-1", "1" * 11, "", "Wed, " + SECRET[:16]])
async def test_anything_else_in_retry_after_is_not(value: str) -> None:
    assert (await error_of(Response([b"slow down"], 429, {"retry-after": value}))).retry_after is None


async def test_a_credential_of_digits_is_no_retry_after() -> None:
    response = Response([b"slow down"], 429, {"retry-after": "90210"})
    assert (await error_of(response, credential={"key": "90210"})).retry_after is None


async def test_an_aws_throttling_exception_is_a_429_whatever_its_status() -> None:
    error = await error_of(Response([b"{}"], 400, {"x-amzn-errortype": "ThrottlingException:http://x/"}))
    assert error.reason == (
        "Error from remote service: The request was denied due to remote server throttling. "
        "To change the retry policy and behavior, please update the connector client_config."
    )
    assert error.type == "remote_connector_throttling_exception"
    assert (error.status, error.provider_status) == (429, 429)
    other = await error_of(Response([b"{}"], 400, {"x-amzn-errortype": "ValidationException"}))
    assert (other.reason, other.provider_status) == ("Error from remote service: {}", 400)
    assert (error.provider.code, other.provider.code) == ("ThrottlingException", "ValidationException")


async def test_an_error_that_is_no_utf_8_is_shown_as_far_as_it_can_be() -> None:
    error = await error_of(Response([b"caf\xe9"], 500))
    assert error.reason == "Error from remote service: caf\N{REPLACEMENT CHARACTER}"


async def test_an_error_without_a_body_is_named_by_its_status() -> None:
    error = await error_of(Response([], 503))
    assert error.reason == "Remote service returned error status 503 with empty body"


async def test_of_a_large_error_only_the_beginning_is_read() -> None:
    part = b"x" * (MAX_ERROR_BYTES // 4)
    response = Response([part] * 10, 500)
    error = await error_of(response)
    assert response.reads == 4
    assert error.reason == ("Error from remote service: " + "x" * 2048)[:2048] + "..."


async def test_a_body_up_to_the_limit_is_read_and_one_byte_more_is_refused() -> None:
    assert await read_all(Response([b"12", b"345"]), 5) == b"12345"
    assert await read_all(Response([]), 0) == b""
    with pytest.raises(UpstreamError) as raised:
        await read_all(Response([b"12", b"345"]), 4)
    assert raised.value.reason == "The provider's response is larger than 4 bytes (plugins.ml_commons.max_json_size)"


async def test_fetch_returns_the_body_and_closes_the_response() -> None:
    provider = ScriptedProvider(lambda request: json_response({"ok": 1}))
    assert await calls_to(provider).fetch(ready(), REQUEST) == b'{"ok":1}'
    [call] = provider.calls
    assert call.request is REQUEST
    assert (call.pool_key, dict(call.tls), call.is_open) == ("m", {}, False)


async def test_a_good_body_comes_without_the_credential() -> None:
    echo = {"your_key": SECRET, "header": [base64.b64encode(f"user:{SECRET}".encode()).decode()], "n": 1.5}
    body = await calls_to(ScriptedProvider(lambda request: json_response(echo))).fetch(ready(), REQUEST)
    assert orjson.loads(body) == {"your_key": "***", "header": ["dXNlcjp***A=="], "n": 1.5}


@pytest.mark.parametrize("parts", [[], [b" ", b"\r\n"]])
async def test_fetch_refuses_an_empty_body(parts: list[bytes]) -> None:
    calls = calls_to(ScriptedProvider(lambda request: Response(parts)))
    with pytest.raises(UpstreamError, match=r"^Remote service returned empty response body$") as raised:
        await calls.fetch(ready(), REQUEST)
    assert raised.value.status == 424


async def test_fetch_refuses_a_bad_status_and_a_body_beyond_max_json_size() -> None:
    calls = calls_to(ScriptedProvider(lambda request: Response([b"broken"], 500)))
    with pytest.raises(UpstreamError, match=r"^Error from remote service: broken$"):
        await calls.fetch(ready(), REQUEST)
    calls = calls_to(ScriptedProvider(lambda request: Response([b"123"])), max_json_size=2)
    with pytest.raises(UpstreamError, match="larger than 2 bytes"):
        await calls.fetch(ready(), REQUEST)


async def test_a_url_that_is_not_trusted_is_never_called() -> None:
    provider = ScriptedProvider()
    with pytest.raises(InvalidRequest, match="not matching the trusted connector endpoint"):
        calls_to(provider).open(ready(), replace(REQUEST, url="https://evil.example/v1"))
    assert provider.calls == []


async def test_connections_are_counted_for_the_connector_or_for_a_model_with_one_of_its_own() -> None:
    provider = ScriptedProvider(lambda request: json_response({}))
    calls = calls_to(provider)
    await calls.fetch(ready({"connector_id": "shared"}), REQUEST)
    await calls.fetch(ready(), REQUEST)
    assert [call.pool_key for call in provider.calls] == ["shared", "m"]


async def test_no_credentials_but_those_of_tls_are_handed_to_the_connection() -> None:
    provider = ScriptedProvider(lambda request: json_response({}))
    credential = {"key": SECRET, "ca_cert_pem": "a", "client_cert_pem": "c"}
    for enabled in (True, False):
        model = ready(client_config={"mutual_tls_enabled": enabled}, credential=credential)
        await calls_to(provider).fetch(model, REQUEST)
    await calls_to(provider).fetch(ready(), REQUEST)
    assert [dict(call.tls) for call in provider.calls] == [
        {"client_cert_pem": "c", "ca_cert_pem": "a"},
        {"ca_cert_pem": "a"},
        {},
    ]


async def test_a_busy_provider_is_called_again_as_client_config_says() -> None:
    statuses = iter([503, 429, 200])
    provider = ScriptedProvider(lambda request: json_response({"ok": 1}, next(statuses)))
    model = ready(client_config={"max_retry_times": 2, "retry_backoff_millis": 0})
    assert await calls_to(provider).fetch(model, REQUEST) == b'{"ok":1}'
    assert len(provider.calls) == 3
    assert {call.pool_key for call in provider.calls} == {"m"}


async def test_without_retries_a_busy_provider_is_called_once() -> None:
    provider = ScriptedProvider(lambda request: json_response({}, 503))
    with pytest.raises(UpstreamError):
        await calls_to(provider).fetch(ready(client_config={"max_retry_times": 0}), REQUEST)
    assert len(provider.calls) == 1


async def test_a_model_with_a_protocol_is_called_by_it_and_not_at_its_url() -> None:
    provider = ScriptedProvider()
    own = OwnModel()
    model = ready(own=own)
    calls = calls_to(provider, trusted_connector_endpoints_regex=())
    assert await calls.fetch(model, REQUEST) == own.response
    assert own.requests == [REQUEST]
    assert provider.calls == []


async def test_the_times_of_a_model_hold_for_its_protocol() -> None:
    timed = ready(own=OwnModel(is_silent=True))
    timed.settings = SidecarSettings(CallLimits(first_byte_timeout_seconds=0.05))
    with pytest.raises(ReadTimedOut, match="did not begin within"):
        await calls_to(ScriptedProvider()).fetch(timed, REQUEST)


@pytest.mark.parametrize("held_by", ["parameters", "credential"])
async def test_aws_requests_are_signed_for_the_region_and_service_of_parameters_or_credential(held_by: str) -> None:
    provider = ScriptedProvider(lambda request: json_response({}))
    place = {"region": "us-east-1", "service_name": "bedrock"}
    fields: dict[str, Any] = {"credential": AWS_KEYS, "parameters": {}}
    fields[held_by] = {**fields[held_by], **place}
    await calls_to(provider).fetch(ready(protocol="aws_sigv4", **fields), replace(REQUEST, url=BEDROCK))
    headers = provider.calls[0].request.headers
    scope = headers["X-Amz-Date"][:8] + "/us-east-1/bedrock/aws4_request"
    assert headers["Authorization"].startswith(f"AWS4-HMAC-SHA256 Credential=AKIA1234/{scope}, ")
    assert headers["X-Own"] == "1"
    assert "s3cr3t" not in str(headers)


async def test_parameters_win_over_the_credential_where_both_name_a_region() -> None:
    provider = ScriptedProvider(lambda request: json_response({}))
    credential = {**AWS_KEYS, "region": "eu-west-1", "service_name": "sagemaker"}
    parameters = {"region": "us-east-1", "service_name": "bedrock"}
    model = ready(protocol="aws_sigv4", credential=credential, parameters=parameters)
    await calls_to(provider).fetch(model, replace(REQUEST, url=BEDROCK))
    assert "/us-east-1/bedrock/" in provider.calls[0].request.headers["Authorization"]


@pytest.mark.parametrize(
    ("parameters", "named"),
    [({"service_name": "bedrock"}, "Missing region"), ({"region": "x"}, "Missing service name")],
)
async def test_aws_without_region_or_service_is_refused(parameters: dict[str, str], named: str) -> None:
    provider = ScriptedProvider()
    model = ready(protocol="aws_sigv4", credential=AWS_KEYS, parameters=parameters)
    with pytest.raises(InvalidRequest, match=f"^{named}$"):
        calls_to(provider).open(model, replace(REQUEST, url=BEDROCK))
    assert provider.calls == []


def test_only_models_with_a_rate_limiter_take_tokens(tmp_path: Path) -> None:
    calls = calls_to(ScriptedProvider(), tmp_path)
    for _ in range(3):
        calls.apply_rate_limits(ready(), ANYONE)
    assert list(tmp_path.iterdir()) == []
    limited = ready({"rate_limiter": {"limit": "1", "unit": "HOURS"}})
    calls.apply_rate_limits(limited, ANYONE)
    with pytest.raises(Throttled) as raised:
        calls.apply_rate_limits(limited, ANYONE)
    assert 3590 <= int(raised.value.retry_after or "0") <= 3600
    calls.apply_rate_limits(ready({"rate_limiter": {"limit": "1", "unit": "HOURS"}}, "other"), ANYONE)

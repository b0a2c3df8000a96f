"""How a provider is called, as its connector's client_config, credential and model say: through a real sidecar."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from integration_tests.support.background_provider import background_provider
from integration_tests.support.certificates import new_authority
from integration_tests.support.connector_bodies import blueprint_connector, openai
from integration_tests.support.fake_provider import (
    SSE_HEAD,
    Act,
    FakeProvider,
    Gate,
    Request,
    Script,
    chunk,
    json_response,
    openai_stream,
)
from integration_tests.support.predict_calls import ask, connector, data_as_map, outputs, predict, reason
from integration_tests.support.sidecars import Sidecar

RETRYING = {"max_retry_times": 3, "retry_backoff_millis": 10, "retry_backoff_policy": "constant"}


def stream(sidecar: Sidecar, model_id: str) -> httpx.Response:
    path = f"/_plugins/_ml/models/{model_id}/_predict/stream"
    return sidecar.client.post(path, json={"parameters": {"inputs": "x"}})


def first_failing(times: int, failure: Script, then: Script) -> Any:
    """A provider's scripts: the failure so many times, then the good response."""
    scripts = iter([failure] * times)
    return lambda request: next(scripts, then)


@pytest.mark.parametrize("failure", [json_response({}, 429), json_response({}, 503), [Act.RESET]])
def test_a_stream_begins_once_the_provider_is_no_longer_busy(sidecar: Sidecar, failure: Script) -> None:
    with background_provider(first_failing(2, failure, openai_stream(["at last"]))) as provider:
        model_id = sidecar.create_model(openai(provider.url, client_config=RETRYING))
        response = stream(sidecar, model_id)
    assert response.status_code == 200
    assert '"response":"at last"' in response.text
    assert len(provider.requests) == 3


def test_a_whole_prediction_is_tried_again_too(sidecar: Sidecar) -> None:
    with background_provider(first_failing(2, json_response({}, 500), json_response({"ok": 1}))) as provider:
        model_id = sidecar.create_model({**connector(provider.url), "client_config": RETRYING})
        assert data_as_map(ask(sidecar, model_id, inputs="x")) == {"ok": 1}
    assert len(provider.requests) == 3


def test_without_retries_a_busy_provider_is_an_error_at_once(sidecar: Sidecar) -> None:
    with background_provider(json_response({"error": "busy"}, 429, retry_after="90")) as provider:
        model_id = sidecar.create_model(openai(provider.url, client_config={"max_retry_times": 0}))
        response = stream(sidecar, model_id)
    assert "busy" in reason(response, 429)
    assert response.headers["retry-after"] == "90"
    assert len(provider.requests) == 1


def test_a_stream_that_has_begun_is_never_requested_again(sidecar: Sidecar) -> None:
    begun = chunk(b'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n')
    gate = Gate()
    with background_provider([SSE_HEAD, begun, gate, Act.RESET]) as provider:
        model_id = sidecar.create_model(openai(provider.url, client_config=RETRYING))
        path = f"/_plugins/_ml/models/{model_id}/_predict/stream"
        with sidecar.client.stream("POST", path, json={"parameters": {"inputs": "x"}}) as response:
            lines = response.iter_lines()
            assert "Hel" in next(lines)
            gate.open()
            assert "stream_truncated_exception" in "".join(lines)
    assert len(provider.requests) == 1


def test_the_rate_limit_counts_calls_of_the_provider_not_of_the_sidecar(sidecar: Sidecar) -> None:
    def script(request: Request) -> Script:
        return json_response({"data": [{"embedding": [1.0]} for _ in request.json()["input"]]})

    with background_provider(script) as provider:
        body = blueprint_connector("openai-embedding", provider.url, input_docs_processed_step_size="1")
        model_id = sidecar.create_model(body, rate_limiter={"limit": "3", "unit": "HOURS"})
        assert len(outputs(predict(sidecar, model_id, {"text_docs": ["a", "b"]}))) == 2
        response = predict(sidecar, model_id, {"text_docs": ["a", "b"]})
    assert reason(response, 429) == "Request is throttled at model level."
    assert int(response.headers["retry-after"]) > 0
    assert len(provider.requests) <= 3


@pytest.mark.parametrize("config", [{"skip_ssl_verification": True}, {}])
async def test_a_certificate_of_an_unknown_authority_is_accepted_only_if_the_connector_allows_it(
    sidecar: Sidecar, client: httpx.AsyncClient, tmp_path: Path, config: dict[str, Any]
) -> None:
    tls = new_authority().issue("localhost").server_context(tmp_path)
    async with FakeProvider(openai_stream(["safe"]), tls) as provider:
        model_id = await asyncio.to_thread(sidecar.create_model, openai(provider.url, client_config=config))
        path = f"/_plugins/_ml/models/{model_id}/_predict/stream"
        response = await client.post(path, json={"parameters": {"inputs": "x"}})
    if config:
        assert '"response":"safe"' in response.text
    else:
        assert "is not trusted" in reason(response, 424)
        assert provider.requests == []


async def test_a_certificate_of_the_connectors_own_authority_is_accepted(
    sidecar: Sidecar, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    authority = new_authority()
    tls = authority.issue("localhost").server_context(tmp_path)
    async with FakeProvider(openai_stream(["private"]), tls) as provider:
        credential = {"openAI_key": "k", "ca_cert_pem": authority.certificate_pem}
        model_id = await asyncio.to_thread(sidecar.create_model, openai(provider.url, credential=credential))
        path = f"/_plugins/_ml/models/{model_id}/_predict/stream"
        response = await client.post(path, json={"parameters": {"inputs": "x"}})
    assert '"response":"private"' in response.text


async def test_mutual_tls_shows_the_connectors_certificate(
    sidecar: Sidecar, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    authority = new_authority()
    own = authority.issue("sidecar")
    credential = {
        "openAI_key": "unused",
        "client_cert_pem": own.certificate_pem,
        "client_key_pem": own.key_pem,
        "ca_cert_pem": authority.certificate_pem,
    }
    tls = authority.issue("localhost").server_context(tmp_path, clients_of=authority)
    async with FakeProvider(openai_stream(["mutual"]), tls) as provider:
        body = openai(provider.url, client_config={"mutual_tls_enabled": True}, credential=credential)
        model_id = await asyncio.to_thread(sidecar.create_model, body)
        path = f"/_plugins/_ml/models/{model_id}/_predict/stream"
        response = await client.post(path, json={"parameters": {"inputs": "x"}})
    assert '"response":"mutual"' in response.text


def test_a_token_that_is_rotated_in_its_file_reaches_the_provider_with_the_next_call(
    sidecar: Sidecar, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("first-token\n")
    with background_provider(json_response({"ok": 1})) as provider:
        model_id = sidecar.create_model({**connector(provider.url), "credential": {"key": f"file:{token}"}})
        ask(sidecar, model_id, inputs="x")
        token.write_text("second-token\n")
        ask(sidecar, model_id, inputs="x")
        token.unlink()
        message = reason(ask(sidecar, model_id, inputs="x"))
    assert [request.headers["authorization"] for request in provider.requests] == [
        "Bearer first-token",
        "Bearer second-token",
    ]
    assert message == "The credential [key] names a file that cannot be read as text"


def test_a_credential_from_the_environment_is_stored_only_as_its_name_and_encrypted(sidecar: Sidecar) -> None:
    with background_provider(json_response({"ok": 1})) as provider:
        model_id = sidecar.create_model({**connector(provider.url), "credential": {"key": "env:PROVIDER_TOKEN"}})
        assert data_as_map(ask(sidecar, model_id, inputs="x")) == {"ok": 1}
    assert provider.requests[0].headers["authorization"] == "Bearer token-of-the-environment"
    stored = b"".join(file.read_bytes() for file in sidecar.log.parent.iterdir())
    assert f"{provider.port}".encode() in stored
    assert b"PROVIDER_TOKEN" not in stored
    assert b"token-of-the-environment" not in stored


def test_credentials_kept_outside_are_refused_unless_a_setting_allows_them(shared_sidecar: Sidecar) -> None:
    with background_provider(json_response({})) as provider:
        model_id = shared_sidecar.create_model({**connector(provider.url), "credential": {"key": "env:PATH"}})
        message = reason(ask(shared_sidecar, model_id, inputs="x"), 403)
    assert "opensearch_ml_stream.external_credentials_enabled does not allow" in message
    assert provider.requests == []

"""A whole session in which the provider echoes the credentials in every way, and none of them is ever written."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from integration_tests.secrets.written_secrets import command_lines, traces, written_below, written_in
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually
from integration_tests.support.fake_provider import (
    LAST_CHUNK,
    SSE_HEAD,
    Act,
    Request,
    Script,
    chunk,
    head,
    json_response,
    openai_delta,
    sse_event,
)
from integration_tests.support.sidecars import Sidecar, running_sidecar

KEY = "sk-proj-9fA_2bC-4dE7gH1jK3mN5pQ8rS6tU0vW"
LOGIN = "u5er:correct-horse/battery_staple&2024"
STORE_PASSWORD = "st0re%2Fpass-word_of-2024"  # as it stands in a URL
SECRETS = (KEY, LOGIN, base64.b64encode(LOGIN.encode()).decode(), "st0re/pass-word_of-2024", STORE_PASSWORD)

# Whatever the server's code or a library logs, is written here: all levels count as the one that is shown.
DEBUG_LOGS = "import logging\nlogging.INFO = logging.WARNING = logging.ERROR = logging.DEBUG\n"


def forms(secret: str) -> list[str]:
    encoded = secret.encode()
    return [
        secret,
        secret.upper(),
        secret[:-2],
        encoded.hex(),
        *(base64.b64encode(b"u:"[:before] + encoded).decode() for before in range(3)),
        base64.urlsafe_b64encode(b"user:" + encoded).decode(),
        "".join(f"%{code:02x}" for code in encoded),
        "".join(f"\\u{code:04x}" for code in encoded),
        secret.replace("-", "&#45;"),
    ]


ECHO = " | ".join(form for secret in (KEY, LOGIN, base64.b64encode(LOGIN.encode()).decode()) for form in forms(secret))


def stream_that_ends_with(*events: Any) -> Script:
    texts = [openai_delta("Hel"), *(sse_event(event) for event in events), b"data: [DONE]\n\n"]
    return [SSE_HEAD, *(chunk(text) for text in texts), LAST_CHUNK]


SCRIPTS: dict[str, Script] = {
    "error": json_response({"error": {"message": ECHO}}, 401),
    "error as text": [head(500, content_type="text/plain", content_length=str(len(ECHO))) + ECHO.encode()],
    "throttled": json_response({"error": ECHO}, 429, retry_after=KEY, x_request_id=KEY),
    "throttled in digits": json_response({"error": ECHO}, 429, retry_after=LOGIN),
    "good": json_response({"echo": ECHO, KEY: {"nested": [ECHO, 1]}, "n": 1.5}, 200, x_echo=KEY),
    "good as raw JSON": json_response(json.dumps({"a": ECHO})),
    "stream": stream_that_ends_with(
        {"choices": [{"index": 0, "delta": {}, "finish_reason": KEY.upper()}], "model": f"m {LOGIN}", KEY: ECHO}
    ),
    "error in the stream": stream_that_ends_with({"error": {"message": ECHO, "type": KEY, "code": KEY}}),
    "error before the stream": [SSE_HEAD, chunk(sse_event({"error": {"message": ECHO}})), LAST_CHUNK],
    "unknown events": stream_that_ends_with(*[{"unknown": ECHO}] * 5),
    "not a stream": json_response({"message": ECHO}),
    "not a stream's type": [head(200, content_type=f"text/{KEY}", content_length="2") + b"ok"],
    "a coding": [head(200, content_encoding=KEY, content_length="2") + b"ok"],
    "not HTTP": [KEY.encode() + b"\r\n\r\n", Act.CLOSE],
    "cut off": [SSE_HEAD, chunk(openai_delta("Hel")), Act.CLOSE],
}  # fmt: skip


def connector(url: str) -> dict[str, Any]:
    login = base64.b64encode(LOGIN.encode()).decode()
    return {
        "name": "c",
        "version": 1,
        "protocol": "http",
        "client_config": {"connection_timeout": 1},
        "parameters": {"endpoint": url},
        "credential": {"key": KEY, "login": LOGIN, "basic": login},
        "actions": [
            {
                "action_type": "predict",
                "method": "POST",
                "url": "${parameters.endpoint}/v1/chat/completions",
                "headers": {"Authorization": "Bearer ${credential.key}", "X-Basic": "Basic ${credential.basic}"},
                "request_body": '{"messages": [{"role": "user", "content": "${parameters.inputs}"}]}',
            }
        ],
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for all that the sidecar writes: store, log, and what it keeps while it runs."""
    (tmp_path / "debug").mkdir()
    (tmp_path / "debug" / "sitecustomize.py").write_text(DEBUG_LOGS)
    (tmp_path / "written").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "debug"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "written"))
    yield tmp_path / "written"


def calls(sidecar: Sidecar, provider_url: str) -> Iterator[tuple[str, httpx.Response]]:
    """Every response of a small session."""
    client, base = sidecar.client, "/_plugins/_ml"
    body = connector(provider_url)
    model_id = sidecar.create_model(body)
    connector_id = client.get(f"{base}/models/{model_id}").json()["connector_id"]
    wrong = [{**body, "protocol": KEY}, {**body, "credential": KEY}, {**body, "credential": {"k": [KEY]}, "actions": 1}]
    for number, one in enumerate([*wrong[1:], {**body, "actions": [{**body["actions"][0], "url": "http://evil/"}]}]):
        yield f"wrong connector {number}", client.post(f"{base}/connectors/_create", json=one)
    for prompt in SCRIPTS:
        parameters = {"parameters": {"inputs": prompt}}
        yield f"predict {prompt}", client.post(f"{base}/models/{model_id}/_predict", json=parameters)
        for query in ("", "?format=sse"):
            path = f"{base}/models/{model_id}/_predict/stream{query}"
            yield f"stream {prompt} {query}", client.post(path, json=parameters)
    tls_id = sidecar.create_model(connector(provider_url.replace("http:", "https:")))
    yield "TLS", client.post(f"{base}/models/{tls_id}/_predict/stream", json={"parameters": {"inputs": "x"}})
    for path in (f"/connectors/{connector_id}", f"/models/{model_id}", "/connectors/_search", "/models/_search"):
        yield path, client.get(base + path)
    yield "update", client.put(f"{base}/connectors/{connector_id}", json={"credential": {"key": KEY}})
    for path in ("/metrics", "/_health/ready", f"{base}/_settings"):
        yield path, client.get(path)


@pytest.mark.timeout(120)
def test_what_a_provider_echoes_is_in_no_response_log_store_file_or_metric(folder: Path) -> None:
    def script(request: Request) -> Script:
        return SCRIPTS[request.json()["messages"][0]["content"]]

    with (
        background_provider(script) as provider,
        running_sidecar(folder, settings={"opensearch_ml_stream.access_log": "true"}) as sidecar,
    ):
        responses = dict(calls(sidecar, provider.url))
        found = {name: traces(SECRETS, written_in(response)) for name, response in responses.items()}
        assert {name: pieces for name, pieces in found.items() if pieces} == {}
        assert {str(file): pieces for file, data in written_below(folder) if (pieces := traces(SECRETS, data))} == {}
        assert all(KEY in request.headers["authorization"] for request in provider.requests)  # it was sent, though
        log = sidecar.log.read_text()
        assert "DEBUG" in log and " request failed " in log and " request " in log
        assert "provider_status=401" in log and "Error from remote service" in log
        assert all(response.headers.get("x-request-id", "") in log for response in responses.values())
    assert {str(file): pieces for file, data in written_below(folder) if (pieces := traces(SECRETS, data))} == {}
    assert responses["predict good"].json()["inference_results"][0]["output"][0]["dataAsMap"]["n"] == 1.5
    assert responses["stream stream "].text.count('"is_last":true') == 1
    assert responses["stream error "].json()["error"]["provider_status"] == 401


@pytest.mark.timeout(120)  # of which a busy machine may need most to start the processes
def test_the_stores_password_is_in_no_command_line_response_or_log(folder: Path) -> None:
    store = f"http://me:{STORE_PASSWORD}@127.0.0.1:1"
    with running_sidecar(folder, arguments=("--store", store, "--workers", "2")) as sidecar:
        eventually(lambda: len(list(command_lines(sidecar.process.pid))) >= 3)
        lines = list(command_lines(sidecar.process.pid))
        assert any(b"--port" in line and b"http://me@127.0.0.1:1" in line for line in lines)
        assert traces(SECRETS, b"\n".join(lines)) == []
        for path in ("/_health/ready", "/_plugins/_ml/models/x", "/_plugins/_ml/_settings", "/metrics"):
            assert traces(SECRETS, written_in(sidecar.client.get(path))) == []
        found = {str(file): traces(SECRETS, data) for file, data in written_below(folder)}
        assert {file: pieces for file, pieces in found.items() if pieces} == {}


def test_a_search_for_secrets_finds_them_in_every_form() -> None:
    """The tests above would pass without this if it found nothing."""
    for secret in (KEY, LOGIN):
        for form in forms(secret):
            assert traces((secret,), f"before {form} after".encode()), form
    assert traces(SECRETS, b"sk-proj-9fA and nothing else") == []

"""`/generate-stream`, POST and GET: what comes, what it costs whom, and who is refused."""

import asyncio
import json
from typing import Any
from urllib.parse import quote

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.errors import (
    Forbidden,
    InvalidRequest,
    MLStreamError,
    NotFound,
    Throttled,
    Unauthorized,
    UpstreamError,
)
from opensearch_ml_stream.extensions.generate_stream.growing_text import MAX_TEXT_BYTES
from opensearch_ml_stream.extensions.generate_stream.opening import generate_stream_routes
from opensearch_ml_stream.rest_handlers.application import rest_application
from opensearch_ml_stream.rest_handlers.base_path import Paths
from opensearch_ml_stream.rest_handlers.http.host_and_origin import BrowserPolicy
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses, ResponseLimits
from opensearch_ml_stream.rest_handlers.http.responses import plain_error_body
from opensearch_ml_stream.rest_handlers.routes.predict_stream import PredictStream
from tests.asgi_exchange import JSON_HEADERS, SECURITY_HEADERS, Exchange, send_request
from tests.generate_stream.scripted_models import ScriptedModels
from tests.recording_gate import CALLER, RecordingGate
from tests.scripted_predictions import LIMITS, Last, ScriptedPredictions, text
from tests.virtual_time import in_virtual_time

PATH = "/generate-stream"
ASKED = "/generate-stream?prompt=" + quote("Why is the sky blué?")
PREDICT_ACTIONS = ("cluster:admin/opensearch/ml/predict/stream", "cluster:admin/opensearch/ml/predict")
DONE = b"data: [DONE]\n\n"


class Tutorial:
    """The routes over one scripted model."""

    def __init__(
        self,
        *steps: Any,
        error: MLStreamError | None = None,
        refusal: MLStreamError | None = None,
        model: str = "my-model",
        limits: ResponseLimits = LIMITS,
    ) -> None:
        self.predictions = ScriptedPredictions(*steps)
        self.models = ScriptedModels(self.predictions, error)
        self.gate = RecordingGate(refusal)
        self.in_flight = InFlightResponses(limits)
        paths = Paths((PATH,), {PATH: plain_error_body})
        routes = generate_stream_routes(self.models, lambda: model, self.in_flight, self.gate)
        router = rest_application(routes, paths)
        policy = BrowserPolicy()
        self.application = PredictStream(self.predictions, self.in_flight, self.gate, router, policy, paths=paths)

    async def post(self, body: object, **headers: str) -> Exchange:
        return await send_request(self.application, "POST", PATH, body, dashed(headers))

    async def get(self, target: str = ASKED, **headers: str) -> Exchange:
        return await send_request(self.application, "GET", target, headers=dashed(headers))

    @property
    def calls(self) -> int:
        """How often the provider was called."""
        return len(self.predictions.requests)


def dashed(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


async def test_a_post_streams_the_text_so_far_and_then_done() -> None:
    tutorial = Tutorial(text("What"), text(" is"), Last(text("?"), Ending()))
    exchange = await tutorial.post({"prompt": "Why?", "max_tokens": 9, "stop": ["x"], "top_k": None, "stream": True})
    assert exchange.status == 200
    assert exchange.headers["content-type"] == "text/event-stream"
    assert exchange.parts == [
        b'data: {"text": "What"}\n\n',
        b'data: {"text": "What is"}\n\n',
        b'data: {"text": "What is?"}\n\n' + DONE,
    ]
    ((caller, name, version, request),) = tutorial.models.prepared
    assert (caller, name, version) == (CALLER, "my-model", None)
    (tensor,) = request.inputs
    assert (tensor.name, tensor.datatype, tensor.data) == ("prompt", "BYTES", ("Why?",))
    assert request.parameters == {"max_tokens": 9, "stop": ["x"]}
    assert tutorial.predictions.closed.is_set()


async def test_a_get_streams_the_same_with_the_id_that_an_event_source_brings_back() -> None:
    tutorial = Tutorial(text("What"), text(" is"), Ending())
    exchange = await tutorial.get(ASKED + "&temperature=0.2")
    assert exchange.body == b'id: 1\ndata: {"text": "What"}\n\ndata: {"text": "What is"}\n\n' + DONE
    request = tutorial.models.prepared[0][3]
    assert (request.inputs[0].data, request.parameters) == (("Why is the sky blué?",), {"temperature": "0.2"})


async def test_an_event_source_that_comes_again_gets_204_and_calls_nobody() -> None:
    tutorial = Tutorial(text("a"), Ending())
    exchange = await tutorial.get(last_event_id="1")
    assert (exchange.status, exchange.body, tutorial.calls) == (204, b"", 0)
    assert exchange.headers.items() >= SECURITY_HEADERS.items()
    assert tutorial.gate.asked == [PREDICT_ACTIONS]


async def test_a_post_is_a_new_request_whatever_event_it_names() -> None:
    tutorial = Tutorial(text("a"), Ending())
    assert (await tutorial.post({"prompt": "Why?"}, last_event_id="1")).status == 200


@pytest.mark.parametrize("target", [PATH, PATH + "?prompt=", PATH + "?max_tokens=3"])
async def test_a_get_without_a_prompt_is_refused(target: str) -> None:
    exchange = await Tutorial().get(target)
    assert (exchange.status, exchange.json()) == (400, {"error": "[prompt] must be a string that is not empty"})


@pytest.mark.parametrize("body", [{}, {"prompt": ""}, {"prompt": 3}, {"prompt": None}, {"prompt": ["a"]}])
async def test_a_post_without_a_prompt_is_refused(body: object) -> None:
    tutorial = Tutorial()
    exchange = await tutorial.post(body)
    assert (exchange.status, exchange.json()) == (400, {"error": "[prompt] must be a string that is not empty"})
    assert tutorial.models.prepared == []


@pytest.mark.parametrize("body", [b"{", b"[1]", b'"a"', b""])
async def test_a_body_that_is_no_json_object_is_refused(body: bytes) -> None:
    exchange = await Exchange("POST", PATH, body, JSON_HEADERS).run(Tutorial().application)
    assert exchange.status == 400
    assert isinstance(exchange.json()["error"], str)


async def test_a_form_is_refused_since_any_page_can_send_one() -> None:
    exchange = await Tutorial().post({"prompt": "Why?"}, content_type="application/x-www-form-urlencoded")
    assert (exchange.status, list(exchange.json())) == (406, ["error"])


async def test_a_response_in_one_piece_is_refused() -> None:
    assert (await Tutorial().post({"prompt": "Why?", "stream": False})).status == 400


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotFound("Model my-model not found"), 404),
        (InvalidRequest("no"), 400),
        (UpstreamError("no", provider_status=503), 424),
        (Throttled("no", retry_after="7"), 429),
    ],
)
async def test_an_error_before_the_stream_is_a_status_with_its_reason(error: MLStreamError, status: int) -> None:
    for exchange in (await Tutorial(error=error).post({"prompt": "x"}), await Tutorial(error).get()):
        assert (exchange.status, exchange.json()) == (status, {"error": error.reason})
        assert exchange.headers.get("retry-after") == error.retry_after


async def test_an_error_in_the_stream_is_its_last_event_and_no_done_follows() -> None:
    tutorial = Tutorial(text("Wha"), UpstreamError("cut off"))
    exchange = await tutorial.post({"prompt": "Why?"})
    assert exchange.body == (b'data: {"text": "Wha"}\n\ndata: {"text": "Wha", "error": "cut off", "status": 424}\n\n')
    assert exchange.complete


@pytest.mark.parametrize("refusal", [Unauthorized(), Forbidden("no permissions"), Throttled("locked out")])
async def test_callers_who_may_not_predict_are_refused_by_the_gate(refusal: MLStreamError) -> None:
    tutorial = Tutorial(text("a"), Ending(), refusal=refusal)
    exchanges = [await tutorial.post({"prompt": "x"}), await tutorial.get(), await tutorial.get(last_event_id="1")]
    assert [exchange.status for exchange in exchanges] == [refusal.status] * 3
    assert tutorial.gate.asked == [PREDICT_ACTIONS] * 3
    assert tutorial.calls == 0


async def test_without_a_model_in_the_setting_there_is_nothing() -> None:
    tutorial = Tutorial(text("a"), Ending(), model="")
    exchanges = [
        await tutorial.post({"prompt": "x"}), await tutorial.get(), await tutorial.get(last_event_id="1"),
        await tutorial.get("/generate-stream/demo"),
    ]  # fmt: skip
    assert [exchange.status for exchange in exchanges] == [404] * 4
    assert all("opensearch_ml_stream.generate_stream_model" in exchange.json()["error"] for exchange in exchanges)
    assert tutorial.calls == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"sec_fetch_site": "same-site", "sec_fetch_mode": "no-cors", "sec_fetch_dest": "image"},
        {"sec_fetch_site": "Same-Site"},
        {"sec_fetch_site": "none", "sec_purpose": "prefetch;prerender"},
    ],
)
async def test_a_browser_makes_no_get_for_a_page_of_another_port_nor_ahead_of_its_user(headers: dict[str, str]) -> None:
    tutorial = Tutorial(text("a"), Ending())
    exchange = await tutorial.get(**headers)
    assert (exchange.status, tutorial.calls, tutorial.gate.asked) == (403, 0, [])


@pytest.mark.parametrize("headers", [{}, {"sec_fetch_site": "same-origin"}, {"sec_fetch_site": "none"}])
async def test_own_pages_addresses_that_are_typed_in_and_other_clients_may_get(headers: dict[str, str]) -> None:
    assert (await Tutorial(text("a"), Ending()).get(**headers)).status == 200


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE"])
async def test_no_other_method_calls_the_provider(method: str) -> None:
    tutorial = Tutorial(text("a"), Ending())
    exchange = await send_request(tutorial.application, method, ASKED)
    assert (exchange.status, exchange.headers["allow"], tutorial.calls) == (405, "GET, POST", 0)


@in_virtual_time
async def test_a_slow_provider_leaves_an_event_source_with_an_id_before_its_first_event() -> None:
    exchange = await Tutorial(40.0, text("a"), Ending()).get()
    opening = b'id: 1\ndata: {"text": ""}\n\n'
    assert exchange.parts == [opening, opening, opening, b'id: 1\ndata: {"text": "a"}\n\n', DONE]
    assert exchange.send_times == [5.0, 5.0, 20.0, 35.0, 40.0, 40.0]


async def test_a_client_that_disconnects_ends_the_provider_call() -> None:
    never = asyncio.Event()
    tutorial = Tutorial(text("a"), never)
    exchange = Exchange("GET", ASKED)
    async with exchange.running(tutorial.application):
        await exchange.until_sent(2)
        exchange.disconnect()
        await tutorial.predictions.closed.wait()
    assert len(tutorial.in_flight) == 0


async def test_a_text_without_end_ends_with_an_error_and_ends_the_provider_call() -> None:
    never = asyncio.Event()
    tutorial = Tutorial(*[[Chunk("x" * 300_000)]] * 4, never)
    exchange = await tutorial.post({"prompt": "Why?"})
    last = json.loads(exchange.body.split(b"\n\n")[-2].removeprefix(b"data: "))
    assert (last["status"], len(last["text"])) == (424, 1_200_000)
    assert str(MAX_TEXT_BYTES) in last["error"]
    assert tutorial.predictions.closed.is_set()
    assert exchange.complete


@pytest.mark.parametrize(
    ("file", "content_type"),
    [
        ("demo", "text/html; charset=utf-8"),
        ("demo.css", "text/css; charset=utf-8"),
        ("demo.js", "text/javascript; charset=utf-8"),
    ],
)
async def test_the_page_is_files_of_this_server_and_may_use_no_others(file: str, content_type: str) -> None:
    tutorial = Tutorial()
    exchange = await tutorial.get(f"{PATH}/{file}")
    assert (exchange.status, exchange.headers["content-type"]) == (200, content_type)
    policies = [value for name, value in exchange.messages[0]["headers"] if name == b"content-security-policy"]
    assert len(policies) == 1
    assert {b"default-src 'none'", b"script-src 'self'"} <= set(policies[0].split(b"; "))
    assert b"unsafe" not in policies[0]
    assert exchange.headers["x-content-type-options"] == "nosniff"
    assert tutorial.gate.asked == [PREDICT_ACTIONS]
    assert b"http" not in exchange.body.replace(b"/generate-stream", b"")  # nothing is fetched from elsewhere


async def test_there_are_no_other_files() -> None:
    assert (await Tutorial().get(f"{PATH}/demo.html")).status == 404


async def test_the_page_is_for_those_who_may_predict() -> None:
    exchange = await Tutorial(refusal=Unauthorized()).get(f"{PATH}/demo")
    assert (exchange.status, exchange.headers["www-authenticate"][:5]) == (401, "Basic")

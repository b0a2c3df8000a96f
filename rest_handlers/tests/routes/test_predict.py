"""Predictions that are one JSON object, and batch jobs."""

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError, Throttled, UpstreamError
from tests.asgi_exchange import JSON_HEADERS, Exchange, send_request
from tests.scripted_predictions import BODY, JOB, LIMITS, STREAM_PATH, WHOLE, Raised, ScriptedPredictions, Sidecar

MODELS = "/_plugins/_ml/models/m1"
PATHS = [MODELS + "/_predict", "/_plugins/_ml/_predict/text_embedding/m1", MODELS + "/_batch_predict"]
EVERY_PATH = pytest.mark.parametrize("path", PATHS)


async def post(
    predictions: ScriptedPredictions, path: str, body: object = BODY, headers: dict[str, str] | None = None
) -> Exchange:
    sidecar = Sidecar(predictions)
    exchange = await send_request(sidecar.application, "POST", path, body, headers)
    assert exchange.complete and len(sidecar.in_flight) == 0
    return exchange


@pytest.mark.parametrize(
    ("path", "call", "response"),
    [
        (MODELS + "/_predict", ("predict", "m1", BODY, None), WHOLE),
        ("/_plugins/_ml/_predict/text_embedding/m1", ("predict", "m1", BODY, "text_embedding"), WHOLE),
        (MODELS + "/_batch_predict", ("batch_predict", "m1", BODY), JOB),
        (STREAM_PATH + "?stream=false", ("predict", "m1", BODY, None), WHOLE),
    ],
)
@pytest.mark.parametrize("slash", ["", "/"])
async def test_a_prediction_is_one_object(path: str, call: tuple[object, ...], response: object, slash: str) -> None:
    predictions = ScriptedPredictions()
    target, question, query = path.partition("?")
    exchange = await post(predictions, target + slash + question + query)
    assert (exchange.status, exchange.json()) == (200, response)
    assert predictions.requests == [call]
    assert exchange.headers["content-type"] == "application/json; charset=UTF-8"


async def test_a_client_that_accepts_json_alone_gets_one_object_of_a_stream() -> None:
    predictions = ScriptedPredictions()
    exchange = await post(predictions, STREAM_PATH, headers={"accept": "application/json"})
    assert (exchange.json(), predictions.requests) == (WHOLE, [("predict", "m1", BODY, None)])


@EVERY_PATH
async def test_a_prediction_is_pretty_and_filtered_and_has_the_opaque_id(path: str) -> None:
    target = path + "?pretty&filter_path=task_id,inference_results.output.name"
    exchange = await post(ScriptedPredictions(), target, headers={"X-Opaque-Id": "me"})
    assert exchange.body.startswith(b"{\n  ") and b"dataAsMap" not in exchange.body and b"CREATED" not in exchange.body
    assert exchange.headers["x-opaque-id"] == "me"


@EVERY_PATH
@pytest.mark.parametrize(
    "error",
    [InvalidRequest("wrong"), UpstreamError("no", provider_status=500), Throttled("slow", retry_after="7")],
    ids=lambda error: str(error.status),
)
async def test_an_error_is_a_status_with_opensearchs_body(path: str, error: MLStreamError) -> None:
    exchange = await post(ScriptedPredictions(opening=(Raised(error),)), path)
    assert (exchange.status, exchange.json()) == (error.status, error.body())
    assert exchange.headers.get("retry-after") == error.retry_after


@EVERY_PATH
async def test_a_defect_is_a_500_that_does_not_tell_what_happened(path: str) -> None:
    exchange = Exchange("POST", path, BODY, JSON_HEADERS)
    with pytest.raises(RuntimeError, match="a prompt"):  # on its way to the server's log
        await exchange.run(Sidecar(ScriptedPredictions(opening=(Raised(RuntimeError("a prompt")),))).application)
    assert (exchange.status, exchange.reason()) == (500, "Internal error; the server's log says more")
    assert exchange.complete


@EVERY_PATH
async def test_a_wrong_request_is_refused_before_the_prediction(path: str) -> None:
    predictions = ScriptedPredictions()
    for query, body, headers, status in (
        ("?foo", BODY, {}, 400),
        ("?format=sse", BODY, {}, 400),
        ("?human=no", BODY, {}, 400),
        ("", b"x" * (LIMITS.max_body_size + 1), {}, 413),
        ("", BODY, {"content-type": "text/plain"}, 406),
        ("", BODY, {"content-encoding": "br"}, 400),
    ):
        exchange = await post(predictions, path + query, body, headers)
        assert exchange.status == status
    assert predictions.requests == []


@EVERY_PATH
async def test_a_body_of_the_largest_size_is_taken(path: str) -> None:
    body = b"x" * LIMITS.max_body_size
    predictions = ScriptedPredictions()
    assert (await post(predictions, path, body)).status == 200
    assert predictions.requests[0][2] == body


@EVERY_PATH
async def test_without_a_body_the_content_type_does_not_matter(path: str) -> None:
    predictions = ScriptedPredictions()
    assert (await post(predictions, path, None)).status == 200  # the service says what is missing
    assert predictions.requests[0][2] == b""


@EVERY_PATH
async def test_a_client_that_disconnects_within_its_request_gets_nothing(path: str) -> None:
    predictions = ScriptedPredictions()
    exchange = Exchange("POST", path, BODY, JSON_HEADERS, cut=True)
    await exchange.run(Sidecar(predictions).application)
    assert (exchange.messages, predictions.requests) == ([], [])


@EVERY_PATH
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD"])
async def test_a_prediction_is_posted(path: str, method: str) -> None:
    predictions = ScriptedPredictions()
    exchange = await send_request(Sidecar(predictions).application, method, path)
    text = f"Incorrect HTTP method for uri [{path}] and method [{method}], allowed: [POST]"
    assert (exchange.status, exchange.headers["allow"]) == (405, "POST")
    assert (exchange.json(), predictions.requests) == ({"error": text, "status": 405}, [])

"""Calls of runtimes: which method, what is sent, and what inputs of every kind become."""

from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.predict.inputs import (
    PredictInput,
    QuestionAnsweringInput,
    RemoteInput,
    TextDocsInput,
    TextSimilarityInput,
)
from opensearch_ml_stream.connectors.predict.pre_process import STEP_SIZE
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_request import RuntimeAction, predict_steps
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_stream import RUNTIME_STREAM
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_urls import runtime_url

ACTION = Action("PREDICT", "POST", runtime_url("a b"), request_body='{"inputs": ${parameters.inputs}}')


def calls(predict_input: PredictInput, **connector: str) -> list[dict[str, list[Any]]]:
    """The tensors of each call that an input leads to, by name."""
    steps = predict_steps(connector, predict_input)
    bodies = [orjson.loads(RuntimeAction(ACTION, connector).render(step.parameters).body) for step in steps]
    return [{tensor["name"]: tensor["data"] for tensor in body["inputs"]} for body in bodies]


def test_a_prediction_calls_predict_and_a_stream_predict_stream() -> None:
    action = RuntimeAction(ACTION, {})
    whole, stream = action.render({"prompt": "p"}), action.render({"prompt": "p"}, RUNTIME_STREAM)
    assert (whole.method, whole.url) == ("POST", "runtime://a%20b/predict")
    assert stream.url == "runtime://a%20b/predict_stream"
    assert whole.body == stream.body
    assert whole.headers == {}


def test_the_connectors_parameters_stand_under_the_requests() -> None:
    action = RuntimeAction(ACTION, {"temperature": "0.5", "n": "1"})
    assert orjson.loads(action.render({"prompt": "p", "n": "2"}).body)["parameters"] == {"temperature": 0.5, "n": 2}


@pytest.mark.parametrize(
    ("predict_input", "tensors"),
    [
        (RemoteInput({"prompt": "p"}), {"prompt": ["p"]}),
        (TextDocsInput(("a", "b")), {"text_docs": ["a", "b"]}),
        (TextSimilarityInput("q", ("a", "b")), {"text_docs": ["a", "b"], "query_text": ["q"]}),
        (QuestionAnsweringInput("q", "c"), {"question": ["q"], "context": ["c"]}),
    ],
)
def test_every_kind_of_input_becomes_tensors(predict_input: PredictInput, tensors: dict[str, list[str]]) -> None:
    assert calls(predict_input) == [tensors]


def test_texts_are_divided_as_the_connector_says() -> None:
    with_one = RuntimeAction(ACTION, {STEP_SIZE: "1"}).render({"prompt": "p"})
    assert "parameters" not in orjson.loads(with_one.body)
    divided = calls(TextDocsInput(("a", "b", "c")), **{STEP_SIZE: "2"})
    assert divided == [{"text_docs": ["a", "b"]}, {"text_docs": ["c"]}]

"""Connectors of small templates, and the predict parameters that tensors become by them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.documents import connector_document, read_connector
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.model_inputs import find_model_inputs
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceRequest, Tensor
from opensearch_ml_stream.extensions.v2.protocol.predict_inputs import (
    PredictInputs,
    predict_inputs,
)

BLUEPRINTS = sorted((Path(__file__).parents[4] / "blueprints").glob("*.json"))
QUESTION = 'What is "the meaning"?\n世界'


def compiled(connector: Mapping[str, Any]) -> CompiledAction:
    read = read_connector(connector_document(connector))
    given = dict.fromkeys(read.credential, "a key")  # a blueprint leaves its credential to be given
    return CompiledAction.compile(read.action(), ConnectorParameters.compile(read.parameters), given)


def action(body: str, url: str = "http://127.0.0.1/", function: str | None = None, **parameters: Any) -> CompiledAction:
    predict: dict[str, Any] = {"action_type": "predict", "method": "POST", "url": url, "request_body": body}
    if function is not None:
        predict["pre_process_function"] = function
    return compiled({
        "name": "c", "version": "1", "protocol": "http", "credential": {"key": "x"}, "parameters": parameters,
        "actions": [predict],
    })  # fmt: skip


def text(*elements: str | bytes | None, name: str = "x", **parameters: Any) -> Tensor:
    return Tensor(name, "BYTES", [len(elements)], elements, parameters)


def read(target: CompiledAction, *tensors: Tensor, prompt: str | None = None, **parameters: Any) -> PredictInputs:
    return predict_inputs(
        InferenceRequest(tensors, parameters=parameters), find_model_inputs(target.action, target.parameters, prompt)
    )


def rendered(target: CompiledAction, *tensors: Tensor, prompt: str | None = None, **parameters: Any) -> Any:
    (one,) = read(target, *tensors, prompt=prompt, **parameters).inputs
    return orjson.loads(target.render(one.parameters).body)


def refused(target: CompiledAction, *tensors: Tensor, **parameters: Any) -> str:
    with pytest.raises(InvalidRequest) as raised:
        read(target, *tensors, **parameters)
    return raised.value.reason


PROMPT = action('{"prompt": "${parameters.inputs}", "n": ${parameters.n:-1}}')


MESSAGES = action('{"messages": ${parameters.messages}, "tools": ${parameters.tools:-null}}')

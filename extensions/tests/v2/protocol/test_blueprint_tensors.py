"""Tensors for every shipped connector: each text goes to the provider once, by each name that the tensor may have."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.predict.inputs import PredictInput
from opensearch_ml_stream.connectors.predict.model_inputs import ModelInputs, find_model_inputs
from opensearch_ml_stream.connectors.predict.pre_process import Step, plan_steps
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction
from opensearch_ml_stream.extensions.v2.protocol.messages import Tensor
from opensearch_ml_stream.extensions.v2.service.stored_inference_models import metadata_tensors
from tests.v2.protocol.predict_input_setup import BLUEPRINTS, compiled, read, text

# Texts that a number, a list or a name could be taken for.
_TEXTS = ('What is "the meaning"?\n世界', "[1, 2]", '{"a": 1}', "2024", "null", '"quoted"')


def _target(path: Path) -> tuple[CompiledAction, ModelInputs]:
    target = compiled(json.loads(path.read_text())["connector"])
    return target, find_model_inputs(target.action, target.parameters)


def _names(target: CompiledAction, inputs: ModelInputs) -> set[str]:
    """The names that the metadata shows, that of the place in the template, and one of the client's own."""
    if inputs.ranks:
        return {"documents"}
    shown = {tensor["name"] for tensor in metadata_tensors(inputs)["inputs"]}
    places = {"input", "inputs", "texts", "inputText", "prompt", "message", "messages", "contents"} & inputs.names
    return {*shown, *places, "of-my-own"}


def _bodies(target: CompiledAction, predict_inputs: Any) -> Iterator[Any]:
    """The bodies that the provider gets for the predictions of a request."""
    given: PredictInput
    for given in predict_inputs.inputs:
        for step in plan_steps(target.action, target.parameters.values, given):
            assert isinstance(step, Step)
            yield orjson.loads(target.render(step.parameters).body)


def _strings(value: Any) -> list[str]:
    """All strings in a body."""
    if isinstance(value, dict):
        return [found for member in value.values() for found in _strings(member)]
    if isinstance(value, list):
        return [found for member in value for found in _strings(member)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("count", [1, 2, len(_TEXTS)])
@pytest.mark.parametrize("path", BLUEPRINTS, ids=lambda path: path.stem)
def test_each_text_is_an_input_of_its_own(path: Path, count: int) -> None:
    target, inputs = _target(path)
    for first in range(len(_TEXTS) - count + 1):
        texts = _TEXTS[first : first + count]
        for name in _names(target, inputs):
            query = [text("q", name="query")] if inputs.ranks else []
            tensor = Tensor(name, "BYTES", [count, 1], texts)
            bodies = list(_bodies(target, read(target, *query, tensor)))
            found = [
                one for body in bodies for string in _strings(body) for one in texts if one in (string, _inner(string))
            ]
            assert found == list(texts), (name, bodies)
            assert len(bodies) in (1, count)


@pytest.mark.parametrize("path", BLUEPRINTS, ids=lambda path: path.stem)
def test_what_the_metadata_shows_is_a_whole_request(path: Path) -> None:
    target, inputs = _target(path)
    shown = metadata_tensors(inputs)["inputs"]
    for count in (1, 2):
        tensors = [Tensor(tensor["name"], tensor["datatype"], [count], _TEXTS[:count]) for tensor in shown]
        strings = [string for body in _bodies(target, read(target, *tensors)) for string in _strings(body)]
        assert all(any(one in string for string in strings) for one in _TEXTS[:count])


def _inner(string: str) -> str:
    """What stands between the marks of a prompt's template, which Bedrock's older models want."""
    for before, after in (("[INST] ", " [/INST]"), ("<|end_header_id|>\n\n", "<|eot_id|>")):
        if before in string and after in string:
            return string.partition(before)[2].partition(after)[0]
    return string

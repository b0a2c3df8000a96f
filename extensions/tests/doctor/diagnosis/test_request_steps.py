"""The request that a diagnosis makes of a text."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.documents import Model, read_connector
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.extensions.doctor.diagnosis.request_steps import prepare, with_text
from opensearch_ml_stream.extensions.doctor.diagnosis.step_log import StepLog
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel

MESSAGE = '[{"role":"user","content":"hi"}]'


def model(body: str, action_type: str = "PREDICT", **parameters: str) -> CompiledModel:
    action = {"action_type": action_type, "method": "POST", "url": "https://api.openai.com/v1/chat/completions"}
    connector = read_connector(
        {"name": "c", "protocol": "http", "parameters": parameters, "actions": [{**action, "request_body": body}]}
    )
    return CompiledModel("m", Model("m", None, connector, is_enabled=True, document={}), connector, {})


@pytest.mark.parametrize(
    ("body", "defaults", "given", "called"),
    [
        ('{"messages": ${parameters.messages}}', {}, {}, {"messages": MESSAGE}),
        ('{"messages": ${parameters.messages}}', {}, {"messages": "[]"}, {"messages": "[]"}),
        ('{"prompt": "${parameters.prompt}"}', {}, {"top": "1"}, {"prompt": "hi", "top": "1"}),
        ('{"q": "${parameters.question}"}', {}, {}, {"question": "hi"}),
        ('{"q": "${parameters.inputs}"}', {}, {}, {"inputs": "hi"}),
        (
            '{"messages": ${parameters.messages}}',
            {"messages": '[{"role":"user","content":"${parameters.inputs}"}]'},
            {},
            {"inputs": "hi"},
        ),
        ('{"other": "${parameters.other}"}', {}, {}, {"inputs": "hi"}),
    ],
)
def test_a_text_goes_where_the_connector_has_a_place_for_it(
    body: str, defaults: dict[str, str], given: dict[str, str], called: dict[str, str]
) -> None:
    assert with_text(model(body, **defaults), {"inputs": "hi", **given}) == called


def test_without_a_text_the_parameters_are_those_that_were_given() -> None:
    assert with_text(model('{"messages": ${parameters.messages}}'), {"prompt": "hi"}) == {"prompt": "hi"}


def details(of: CompiledModel) -> Any:
    log = StepLog()
    prepare(of, {"inputs": "hi"}, log)
    return next(step.details for step in log.steps() if step.name == "template")


def test_the_step_tells_the_parameters_of_the_call_if_the_text_went_to_another() -> None:
    found = details(model('{"messages": ${parameters.messages}}'))
    assert (found["body"], found["parameters"]) == (f'{{"messages": {MESSAGE}}}', {"messages": MESSAGE})
    assert "parameters" not in details(model('{"q": "${parameters.inputs}"}'))


def test_a_connector_without_a_predict_action_fails_at_the_template() -> None:
    log = StepLog()
    with pytest.raises(MLStreamError):
        prepare(model("{}", "BATCH_PREDICT"), {"inputs": "hi"}, log)
    assert [step.name for step in log.steps() if step.verdict == "failed"] == ["template"]

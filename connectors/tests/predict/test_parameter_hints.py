"""Names of a call's parameters beside those that a connector has a place for."""

import pytest

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.predict.parameter_hints import MAX_HINTS, ParameterHints, find_parameter_hints

BODY = '{"messages":${parameters.messages},"temperature":${parameters.temperature:-1},"n":${parameters.n.toString()}}'
PARAMETERS = {"model": "gpt", "messages": '[{"role":"user","content":"${parameters.inputs}"}]', "max_tokens": "5"}


def hints() -> ParameterHints:
    action = Action(
        "PREDICT",
        "POST",
        "https://h/${parameters.deployment}",
        headers={"X-Title": "${parameters.title}"},
        request_body=BODY,
    )
    return find_parameter_hints(action, PARAMETERS)


def test_every_name_that_a_template_or_the_connector_has_is_known() -> None:
    names = {"messages", "temperature", "n", "deployment", "title", "inputs", "model", "max_tokens"}
    assert hints().known >= names
    assert hints().known - names == {"_llm_interface", "response_filter"}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("temprature", "temperature"),  # a letter less
        ("temperaturre", "temperature"),  # one more
        ("temparature", "temperature"),  # another
        ("tempreature", "temperature"),  # two changed for each other
        ("maxTokens", "max_tokens"),
        ("max-token", "max_tokens"),
        ("mesages", "messages"),
        ("Inputs", "inputs"),
    ],
)
def test_a_name_that_is_nearly_one_of_them_gets_a_hint(name: str, meant: str) -> None:
    assert hints().of([name]) == [f"The connector has no place for the parameter [{name}]; did you mean [{meant}]?"]


@pytest.mark.parametrize("name", ["color", "tmprtre", "m", "", "_mesages", "模型", "x" * 100_000])
def test_another_name_gets_none(name: str) -> None:
    assert hints().of([name]) == []


def test_a_call_gets_few_hints() -> None:
    found = hints()
    assert len(found.of(f"mesages{'_' * number}" for number in range(100))) == MAX_HINTS


def test_a_connector_with_many_and_long_names_costs_little() -> None:
    body = "".join(f"${{parameters.{'n' * 50}{number}}}" for number in range(900))
    found = find_parameter_hints(Action("PREDICT", "POST", "https://h/", request_body=body), {})
    assert len(found.near) <= 100 * 65
    assert len(found.known) > 900

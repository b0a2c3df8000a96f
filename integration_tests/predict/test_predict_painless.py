"""Painless functions of a connector, run by a real OpenSearch: results, errors, and the number of requests."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from integration_tests.support.background_provider import background_provider
from integration_tests.support.fake_provider import Request, Script, json_response
from integration_tests.support.predict_calls import ask, connector, outputs, predict, reason
from integration_tests.support.sidecars import Sidecar, running_sidecar

from opensearch_ml_stream.connectors.predict.painless import PainlessCall
from opensearch_ml_stream.plugin.predictions.painless_runner import PainlessRunner
from opensearch_ml_stream.plugin.store import Store
from opensearch_ml_stream.plugin.store.open_store import open_store

pytestmark = pytest.mark.opensearch

# As public blueprints have them.
PRE = """
    StringBuilder builder = new StringBuilder();
    builder.append("\\"");
    String first = params.text_docs[0];
    builder.append(first);
    builder.append("\\"");
    def parameters = "{" +"\\"inputs\\":" + builder + "}";
    return  "{" +"\\"parameters\\":" + parameters + "}";"""
POST = """
    def name = "sentence_embedding";
    def dataType = "FLOAT32";
    if (params.embedding == null || params.embedding.length == 0) {
        return params.message;
    }
    def shape = [params.embedding.length];
    return "{" + "\\"name\\":\\"" + name + "\\"," + "\\"data_type\\":\\"" + dataType + "\\"," +
        "\\"shape\\":" + shape + "," + "\\"data\\":" + params.embedding + "}";"""


@pytest.fixture
def sidecar(tmp_path_factory: pytest.TempPathFactory, opensearch_url: str, index_prefix: str) -> Iterator[Sidecar]:
    settings = {"opensearch_ml_stream.index_prefix": index_prefix}
    with running_sidecar(tmp_path_factory.mktemp("sidecar"), opensearch_url, settings) as running:
        yield running


def vector_of(request: Request) -> Script:
    text = request.json()["inputs"]
    return json_response({"message": "no vector"} if text == "" else {"embedding": [len(text), 0.5]})


def test_scripts_make_the_calls_and_the_outputs(sidecar: Sidecar) -> None:
    with background_provider(vector_of) as provider:
        model_id = sidecar.create_model(connector(provider.url, pre_process_function=PRE, post_process_function=POST))
        response = outputs(predict(sidecar, model_id, {"text_docs": ['say "hi"\n', "four", ""]}))
    assert sorted(request.json()["inputs"] for request in provider.requests) == ["", "four", 'say "hi"\n']
    assert [output[0] for output in response] == [
        {"name": "sentence_embedding", "data_type": "FLOAT32", "shape": [2], "data": [9, 0.5]},
        {"name": "sentence_embedding", "data_type": "FLOAT32", "shape": [2], "data": [4, 0.5]},
        {"name": "response", "dataAsMap": {"response": "no vector"}},
    ]


def test_a_script_that_fails_is_the_connectors_fault_and_shows_no_input(sidecar: Sidecar) -> None:
    with background_provider(json_response({})) as provider:
        body = connector(provider.url, pre_process_function="return Integer.parseInt(params.text_docs[0]).toString();")
        model_id = sidecar.create_model(body)
        message = reason(predict(sidecar, model_id, {"text_docs": ["my diary", "1"]}))
        assert message == "Painless script: runtime error: number_format_exception"
        assert "must return a JSON object" in reason(predict(sidecar, model_id, {"text_docs": ["1", "2"]}))
    assert provider.requests == []


def test_a_script_that_uses_a_parameter_and_escape_gets_them(sidecar: Sidecar) -> None:
    script = "return '{\"x\": \"' + escape(params.text) + ${parameters.mark} + '\"}';"
    with background_provider(json_response({"text": 'a "b"'})) as provider:
        model_id = sidecar.create_model(connector(provider.url, parameters={"mark": "!"}, post_process_function=script))
        [[output]] = outputs(ask(sidecar, model_id, inputs="x"))
    assert output == {"name": "response", "dataAsMap": {"x": 'a "b"!'}}


class CountingStore:
    """A real store that counts the scripts it runs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.runs = 0

    async def run_painless(self, source: str, params: Mapping[str, Any]) -> str | None:
        self.runs += 1
        return await self._store.run_painless(source, params)


@pytest.mark.parametrize(
    ("source", "results", "runs", "runs_again"),
    [
        ("return params.x + '!';", ["a!", "\U0001f600!", "a!"], 1, 1),
        ("String f(def x) { return x == 'a' ? null : x; } return f(params.x);", [None, "\U0001f600", None], 1, 1),
        ("if (params.x == 'a') { return 'yes' } else { return 'no' }", ["yes", "no", "yes"], 1, 1),
        ("params.x", ["a", "\U0001f600", "a"], 1, 1),
        # Its value is null where nothing is returned, which no function may do: tried together once, then run alone.
        ("if (params.x == 'a') { return 'yes' }", ["yes", None, "yes"], 3, 2),
    ],
)
async def test_all_runs_of_one_prediction_are_one_request_where_the_script_allows(
    opensearch_url: str, source: str, results: list[str | None], runs: int, runs_again: int
) -> None:
    async with open_store(opensearch_url) as store:
        counting = CountingStore(store)
        scripts = PainlessRunner(counting.run_painless)
        calls = [PainlessCall(source, {"x": x}) for x in ("a", "\U0001f600", "a")]
        assert await scripts.run(calls) == results
        assert counting.runs == runs
        assert await scripts.run(calls) == results
        assert counting.runs == runs + runs_again

"""From texts to the parameters of provider calls."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.inputs import (
    PredictInput,
    QuestionAnsweringInput,
    RemoteInput,
    TextDocsInput,
    TextSimilarityInput,
)
from opensearch_ml_stream.connectors.predict.painless import PainlessCall
from opensearch_ml_stream.connectors.predict.pre_process import ScriptStep, Step, finish_step, plan_steps, split_texts
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText

_SCRIPT = 'return "{\\"parameters\\":{\\"input\\":\\"" + params.text_docs[0] + "\\"}}";'


def _action(function: str | None, body: str = "{}") -> Action:
    return Action("PREDICT", "POST", "http://provider/v1", request_body=body, pre_process_function=function)


def _built_in(name: str) -> Action:
    return _action(f"connector.pre_process.{name}")


def _calls(action: Action, given: PredictInput, **connector: str) -> list[dict[str, object]]:
    """Each call's parameters; those that are JSON text as values."""
    made = plan_steps(action, connector, given)
    assert all(isinstance(step, Step) for step in made)
    return [
        {name: json.loads(text) if isinstance(text, JsonText) else text for name, text in step.parameters.items()}
        for step in made
    ]


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("openai.embedding", [{"input": ["a", 'b"']}]),
        ("default.embedding", [{"input": ["a", 'b"']}]),
        ("cohere.embedding", [{"texts": ["a", 'b"']}]),
        ("cohere.multimodal_embedding", [{"images": ["a", 'b"']}]),
        ("bedrock.embedding", [{"inputText": "a"}, {"inputText": 'b"'}]),
        ("bedrock.multimodal_embedding", [{"inputText": "a", "inputImage": 'b"'}]),
        ("bedrock.nova.embedding", [{"text": "a"}, {"text": 'b"'}]),
        ("bedrock.nova.text_embedding", [{"inputText": "a"}, {"inputText": 'b"'}]),
        ("bedrock.nova.image_embedding", [{"inputImage": "a"}, {"inputImage": 'b"'}]),
        ("bedrock.nova.video_embedding", [{"inputVideo": "a"}, {"inputVideo": 'b"'}]),
        ("bedrock.nova.audio_embedding", [{"inputAudio": "a"}, {"inputAudio": 'b"'}]),
    ],
)
def test_each_embedding_function_names_the_texts_as_its_provider_does(name: str, calls: list[object]) -> None:
    assert _calls(_built_in(name), TextDocsInput(("a", 'b"'))) == calls


def test_without_a_function_texts_are_an_array_named_input() -> None:
    assert _calls(_action(None), TextDocsInput(("a", "b"))) == [{"input": ["a", "b"]}]


@pytest.mark.parametrize("name", ["cohere.rerank", "default.rerank"])
def test_rerank_asks_for_a_score_for_every_document(name: str) -> None:
    given = TextSimilarityInput("q", ("a", "b"))
    assert _calls(_built_in(name), given) == [{"query": "q", "documents": ["a", "b"], "top_n": 2}]


def test_bedrock_rerank_has_its_own_shape() -> None:
    given = TextSimilarityInput("q", ("a",))
    source = {"inlineDocumentSource": {"textDocument": {"text": "a"}, "type": "TEXT"}, "type": "INLINE"}
    queries = [{"textQuery": {"text": "q"}, "type": "TEXT"}]
    expected = {"queries": queries, "sources": [source], "numberOfResults": 1}
    assert _calls(_built_in("bedrock.rerank"), given) == [expected]


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ('{"text": "a"}', {"text": "a"}),
        ('{"image": "aGk="}', {"image": "aGk="}),
        ('{"video": "dg=="}', {"video": "dg=="}),
        ('{"audio": "YQ=="}', {"audio": "YQ=="}),
        ('{"other": 1}', {"text": '{"other": 1}'}),
        ("{oops", {"text": "{oops"}),
        ('["text"]', {"text": '["text"]'}),
        ("[" * 100_000, {"text": "[" * 100_000}),
        ('{"text":' * 900 + "1" + "}" * 900, {"text": '{"text":' * 900 + "1" + "}" * 900}),
        ('{"text": %s}' % ("1" * 5_000), {"text": '{"text": %s}' % ("1" * 5_000)}),
    ],
)
def test_a_nova_text_may_be_an_object_that_says_what_it_is(text: str, parameters: dict[str, str]) -> None:
    assert _calls(_built_in("bedrock.nova.embedding"), TextDocsInput((text,))) == [parameters]


def test_the_requests_own_parameters_win_over_what_a_function_makes() -> None:
    given = TextDocsInput(("a",), {"input": "mine", "dimensions": JsonText("8")})
    assert _calls(_action(None), given) == [{"input": "mine", "dimensions": 8}]


@pytest.mark.parametrize(
    ("name", "given", "inputs"),
    [
        ("openai.embedding", TextDocsInput(("a", "b")), [2]),
        ("openai.embedding", TextDocsInput(("a", "b"), {"input": "[]"}), [None]),
        ("bedrock.embedding", TextDocsInput(("a", "b")), [1, 1]),
        ("bedrock.multimodal_embedding", TextDocsInput(("a", "aGk=")), [None]),
        ("bedrock.nova.video_embedding", TextDocsInput(("dg==",)), [None]),
        ("cohere.rerank", TextSimilarityInput("q", ("a", "b")), [2]),
        ("cohere.rerank", TextSimilarityInput("q", ("a", "b"), {"top_n": "1"}), [None]),
        ("cohere.embedding", RemoteInput({"texts": JsonText('["a","b"]')}), [2]),
        ("cohere.embedding", RemoteInput({"texts": "a"}), [None]),
        ("openai.embedding", RemoteInput({"input": JsonText("[1,2]")}), [None]),
        ("bedrock.embedding", RemoteInput({"inputText": '["a"]'}), [None]),
    ],
)
def test_a_call_says_of_how_many_inputs_its_response_is(
    name: str, given: PredictInput, inputs: list[int | None]
) -> None:
    action = replace(_built_in(name), post_process_function="connector.post_process.openai.embedding")
    steps = plan_steps(action, {}, given)
    assert [step.inputs for step in steps if isinstance(step, Step)] == inputs


def test_parameters_pass_every_built_in_function_unchanged() -> None:
    given = RemoteInput({"p": "x"})
    for name in ("openai.embedding", "cohere.rerank", "bedrock.nova.embedding"):
        assert plan_steps(_built_in(name), {}, given) == [Step({"p": "x"})]
    assert plan_steps(_action(None), {}, given) == [Step({"p": "x"})]


@pytest.mark.parametrize(
    ("function", "given", "reason"),
    [
        ("connector.pre_process.openai.embedding", TextSimilarityInput("q", ("a",)), "TextDocsInputDataSet which"),
        ("connector.pre_process.cohere.rerank", TextDocsInput(("a",)), "only support TextSimilarityInputDataSet"),
        ("connector.pre_process.cohere.rerank", QuestionAnsweringInput("q", "c"), "TextSimilarityInputDataSet"),
        ("connector.pre_process.opnai.embedding", TextDocsInput(("a",)), r"no built-in pre_process_function \[.*opnai"),
        (None, TextSimilarityInput("q", ("a",)), "pre_process_function not defined in connector"),
        (None, QuestionAnsweringInput("q", "c"), "pre_process_function not defined in connector"),
    ],
)
def test_a_function_refuses_an_input_that_it_is_not_for(function: str | None, given: PredictInput, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        plan_steps(_action(function), {}, given)


# Splitting


@given(st.lists(st.text(), min_size=1, max_size=30), st.none() | st.integers(1, 40), st.sampled_from([None, 1, 2]))
def test_splitting_keeps_every_text_in_order_and_no_call_gets_too_many(
    texts: list[str], size: int | None, takes: int | None
) -> None:
    runs = split_texts(texts, size, takes)
    assert [text for run in runs for text in run] == texts
    assert all(1 <= len(run) <= min(size or len(texts), takes or len(texts)) for run in runs)
    assert len({len(run) for run in runs[:-1]}) <= 1


@pytest.mark.parametrize(
    ("name", "size", "calls"),
    [
        ("openai.embedding", None, [["a", "b", "c"]]),
        ("openai.embedding", "2", [["a", "b"], ["c"]]),
        ("openai.embedding", "9", [["a", "b", "c"]]),
    ],
)
def test_the_connectors_step_size_is_the_number_of_texts_in_one_call(
    name: str, size: str | None, calls: list[list[str]]
) -> None:
    connector = {} if size is None else {"input_docs_processed_step_size": size}
    made = _calls(_built_in(name), TextDocsInput(("a", "b", "c")), **connector)
    assert [call["input"] for call in made] == calls


def test_a_function_that_sends_one_text_loses_none_when_the_step_size_is_larger() -> None:
    made = _calls(_built_in("bedrock.embedding"), TextDocsInput(("a", "b", "c")), input_docs_processed_step_size="3")
    assert made == [{"inputText": "a"}, {"inputText": "b"}, {"inputText": "c"}]


def test_a_multimodal_function_sends_text_and_image_in_pairs() -> None:
    texts = TextDocsInput(("a", "i", "b"))
    pairs = [{"inputText": "a", "inputImage": "i"}, {"inputText": "b"}]
    assert _calls(_built_in("bedrock.multimodal_embedding"), texts) == pairs


def test_the_requests_step_size_is_ignored() -> None:
    given = TextDocsInput(("a", "b"), {"input_docs_processed_step_size": "1"})
    assert len(plan_steps(_action(None), {}, given)) == 1


@pytest.mark.parametrize("size", ["0", "-1", "two", "1.5", ""])
def test_a_step_size_that_is_no_positive_integer_is_refused(size: str) -> None:
    with pytest.raises(
        InvalidRequest, match=r"Invalid parameter: input_docs_processed_step_size\. It must be positive"
    ):
        plan_steps(_action(None), {"input_docs_processed_step_size": size}, TextDocsInput(("a",)))


# Painless


def _scripts(action: Action, given: PredictInput, **connector: str) -> list[PainlessCall]:
    made = plan_steps(action, {name.replace("__", "."): value for name, value in connector.items()}, given)
    return [step.call for step in made if isinstance(step, ScriptStep)]


def test_a_script_sees_one_text_at_a_time_escaped_for_its_own_quotes() -> None:
    calls = _scripts(_action(_SCRIPT), TextDocsInput(('say "hi"\n', "é")))
    assert [call.params["text_docs"] for call in calls] == [['say \\"hi\\"\\n'], ["é"]]
    assert {call.source for call in calls} == {_SCRIPT}


def test_a_script_sees_as_many_texts_as_the_step_size_says() -> None:
    calls = _scripts(_action(_SCRIPT), TextDocsInput(("a", "b", "c")), input_docs_processed_step_size="2")
    assert [call.params["text_docs"] for call in calls] == [["a", "b"], ["c"]]


def test_a_script_sees_query_documents_question_and_context_by_name() -> None:
    (similarity,) = _scripts(_action("return params.query_text"), TextSimilarityInput('q"', ("a",)))
    assert similarity.params == {"algorithm": "TEXT_SIMILARITY", "query_text": 'q\\"', "text_docs": ["a"]}
    (answering,) = _scripts(_action("return params.question"), QuestionAnsweringInput("q", "c"))
    assert answering.params == {"algorithm": "QUESTION_ANSWERING", "question": "q", "context": "c"}


def test_a_script_may_get_every_value_as_a_string() -> None:
    flag = {"pre_process_function__convert_input_to_json_string": "true"}
    (call,) = _scripts(_action(_SCRIPT), TextDocsInput(("a",)), **flag)
    assert call.params == {"algorithm": "TEXT_EMBEDDING", "text_docs": '["a"]'}


def test_parameters_reach_a_script_only_when_the_connector_says_so() -> None:
    given = RemoteInput({"p": '{"a": 1}', "n": JsonText("7")})
    assert plan_steps(_action(_SCRIPT), {}, given) == [Step(given.parameters)]
    flags = {"pre_process_function__process_remote_inference_input": "true"}
    (call,) = _scripts(_action(_SCRIPT), given, **flags)
    assert call.params["parameters"] == {"p": '{"a": 1}', "n": "7"}
    assert call.params["p"] == '{"a": 1}'
    flags["pre_process_function__convert_remote_inference_param_to_object"] = "true"
    (call,) = _scripts(_action(_SCRIPT), given, **flags)
    assert call.params["parameters"] == {"p": {"a": 1}, "n": 7}


def test_a_placeholder_in_a_script_becomes_a_string_literal_that_cannot_break_out() -> None:
    (call,) = _scripts(
        _action("return ${parameters.model} + ${parameters.gone} + ${parameters.other:-1};"),
        TextDocsInput(("a",), {"model": 'x"; evil(); \\'}),
    )
    assert call.source == 'return "x\\"; evil(); \\\\" + ${parameters.gone} + 1;'


def test_escape_is_defined_for_a_script_that_calls_it_and_only_then() -> None:
    (calls,) = _scripts(_action("return escape(params.text_docs[0]);"), TextDocsInput(("a",)))
    assert calls.source.startswith("String escape(def input)")
    assert calls.source.endswith("return escape(params.text_docs[0]);")
    own = "String escape(def x) { return x; } return escape(params.text_docs[0]);"
    assert _scripts(_action(own), TextDocsInput(("a",)))[0].source == own


def _script_step(**parameters: str) -> ScriptStep:
    return ScriptStep(PainlessCall(_SCRIPT, {}), parameters)


def test_a_scripts_result_becomes_parameters_under_the_requests_own() -> None:
    result = '{"parameters": {"input": "a\tb", "n": 1, "l": ["x"], "mine": "script"}}'
    made = finish_step(_script_step(mine="request"), result)
    assert made.parameters == {"input": "a\tb", "n": "1", "l": '["x"]', "mine": "request"}
    assert isinstance(made.parameters["l"], JsonText)


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (None, "Preprocess function output is null"),
        ("text", "pre_process_function did not return JSON: Expecting value at line 1, column 1"),
        ("[1]", "must return a JSON object with an object parameters"),
        ('{"parameters": "x"}', "must return a JSON object with an object parameters"),
    ],
)
def test_a_script_that_does_not_return_parameters_is_named(result: str | None, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        finish_step(_script_step(), result)


def test_the_calls_of_a_function_fill_the_template_of_its_blueprint() -> None:
    action = _action("connector.pre_process.cohere.rerank", '{"query":"${parameters.query}","n":${parameters.top_n},'
                     '"documents":${parameters.documents}}')  # fmt: skip
    compiled = CompiledAction.compile(action, ConnectorParameters.compile({}), {})
    (step,) = plan_steps(action, {}, TextSimilarityInput('"q"', ("a", "{}")))
    assert isinstance(step, Step)
    body = json.loads(compiled.render(step.parameters).body)
    assert body == {"query": '"q"', "n": 2, "documents": ["a", "{}"]}

"""Exchanges of whole predictions with a provider that shows what it was sent (`/echo`) or responds as its path says."""

from collections.abc import Mapping, Sequence
from typing import Any

from integration_tests.interop.parity.connectors import ACTION, CONNECTOR, but
from integration_tests.interop.parity.exchanges import Exchanges, Step

_EMBEDDING = but(
    ACTION,
    url="@provider/embeddings",
    request_body='{"input": ${parameters.input}}',
    pre_process_function="connector.pre_process.openai.embedding",
    post_process_function="connector.post_process.openai.embedding",
)


def _model(action: Mapping[str, Any], **fields: Any) -> list[Step]:
    return [
        ("POST /connectors/_create", but(CONNECTOR, actions=[action])),
        (
            "POST /models/_register",
            {"name": "@name", "function_name": "remote", "connector_id": "@connector", **fields},
        ),
    ]


def _deployed(**fields: Any) -> list[Step]:
    return [*_model(ACTION, **fields), ("POST /models/@model/_deploy", None), ("GET /tasks/@task", None)]


def _template(request_body: str) -> list[Step]:
    return _model(but(ACTION, request_body=request_body))


SHARED: Mapping[str, Sequence[Step]] = {
    "@echomodel": _model(ACTION),
    "@embedding": _model(_EMBEDDING),
    "@path": _model(but(ACTION, url="@provider/${parameters.path}")),
    "@quoted": _template('{"m": "${parameters.m}", "n": "${parameters.n:-none}"}'),
    "@bare": _template('{"m": ${parameters.m}, "n": ${parameters.n:-0.7}}'),
    "@within": _template('{"m": "Q: ${parameters.m} A:"}'),
    "@fixed": _template('{"m": "${credential.key}"}'),
    "@nojson": _template("${parameters.m}"),
    "@nobody": _model(but(ACTION, "request_body")),
    "@header": _model(but(ACTION, headers={"X-N": "${parameters.n}", "X-B": True})),
    "@connectorheader": _model(but(ACTION, headers={"X-N": "${parameters.model}"})),
    "@poorheader": _model(but(ACTION, headers={"X-N": "${credential.absent}"})),
    "@batchonly": _model(but(ACTION, action_type="batch_predict")),
    **{f"@{name.lower()}": _model(but(ACTION, method=name)) for name in ("GET", "PUT", "DELETE", "BREW")},
    "@nowhere": _model(but(ACTION, url="http://127.0.0.1:1/")),
    "@manual": _model(ACTION, deploy_setting={"is_auto_deploy_enabled": False}),
    "@disabled": _deployed(is_enabled=False),
    "@interface": _deployed(interface={"input": {"type": "object", "required": ["magic"]}}),
    "@guardrail": _deployed(guardrails={"type": "local_regex", "input_guardrail": {"regex": [".*secret.*"]}}),
}


def _predict(model: str, body: Any, path: str = "_predict") -> list[Step]:
    return [(f"POST /models/{model}/{path}", body)]


def _echo(**parameters: Any) -> list[Step]:
    return _predict("@echomodel", {"parameters": parameters})


def _with(model: str, **parameters: Any) -> list[Step]:
    return _predict(model, {"parameters": {"input": "hi", **parameters}})


def _embed(body: Any, algorithm: str = "text_embedding") -> list[Step]:
    return [(f"POST /_predict/{algorithm}/@embedding", body)]


def _by(algorithm: str, body: Any) -> list[Step]:
    return [(f"POST /_predict/{algorithm}/@echomodel", body)]


_GIVEN: dict[str, Any] = {
    "text": "hi",
    "an empty string": "",
    "Chinese": "你好 😀",
    "a newline and quotes": 'say "hi"\n\\o/ \t',
    "a slash and a tag": "</b>&'=",
    "a number": 5,
    "a small number": 0.0001,
    "a large number": 2**53 + 1,
    "true": True,
    "null": None,
    "an object": {"a": 1},
    "an array": ["a"],
    "messages": [{"role": "user", "content": "hi"}],
    "JSON in a string": '{"a": 1}',
    "messages in a string": '[{"role": "user", "content": "hi"}]',
    "a placeholder": "${parameters.model}",
    "a placeholder of a credential": "${credential.key}",
}

PARAMETERS: Exchanges = {
    "predict": _echo(input="hi"),
    "predict: a trailing slash": _predict("@echomodel", {"parameters": {"input": "hi"}}, "_predict/"),
    "predict: no parameters": _predict("@echomodel", {}),
    "predict: empty parameters": _echo(),
    "predict: null parameters": _predict("@echomodel", {"parameters": None}),
    "predict: parameters in a string": _predict("@echomodel", {"parameters": "hi"}),
    "predict: parameters in an array": _predict("@echomodel", {"parameters": ["hi"]}),
    "predict: a parameter that is not used": _echo(input="hi", color="red"),
    "predict: a parameter of the connector is given": _echo(input="hi", model="other"),
    "predict: an unknown field": _predict("@echomodel", {"parameters": {"input": "hi"}, "color": "red"}),
    "predict: an array": _predict("@echomodel", [1]),
    "predict: not JSON": _predict("@echomodel", b"{not json"),
    "predict: cut off": _predict("@echomodel", b'{"parameters": {"input": "hi"'),
    "predict: an empty body": _predict("@echomodel", b""),
    "predict: without a body": _predict("@echomodel", None),
    "predict: a field twice": _predict("@echomodel", b'{"parameters": {"input": "a", "input": "b"}}'),
    "predict: a comment": _predict("@echomodel", b'{"parameters": /* x */ {"input": "hi"}} // y'),
    "predict: a brace more": _predict("@echomodel", b'{"parameters": {"input": "hi"}}}'),
    "predict: an unknown model": _predict("nobody", {"parameters": {}}),
    "predict: it is disabled": _with("@disabled"),
    "predict: input that its interface refuses": _with("@interface"),
    "predict: input that its guardrail refuses": _with("@guardrail", input="a secret here"),
    "predict: input that its guardrail takes": _with("@guardrail"),
    "predict: it may not deploy itself": _with("@manual"),
    "predict: pretty": _predict("@echomodel", {"parameters": {"input": "hi"}}, "_predict?pretty"),
    "predict: filter_path": _predict("@echomodel", {"parameters": {"input": "hi"}}, "_predict?filter_path=**.method"),
    "predict: an unknown query parameter": _predict("@echomodel", {"parameters": {}}, "_predict?color=red"),
}

TEMPLATES: Exchanges = {
    **{f"template: {name} in quotes": _with("@quoted", m=value) for name, value in _GIVEN.items()},
    **{f"template: {name} without quotes": _with("@bare", m=value) for name, value in _GIVEN.items()},
    **{f"template: {name} within a string": _with("@within", m=value) for name, value in _GIVEN.items()},
    "template: a placeholder without a value": _with("@within"),
    "template: a bare placeholder without a value": _with("@bare"),
    "template: a default is not needed": _with("@bare", m=1, n=2),
    "template: a default in quotes is not needed": _with("@quoted", m="a", n="b"),
    "template: a credential in the body": _with("@fixed"),
    "template: no JSON": _with("@nojson", m="hi"),
    "template: JSON as a whole": _with("@nojson", m={"a": 1}),
    "template: no body": _with("@nobody"),
    "template: the URL": _with("@path", path="echo/x"),
    "template: a blank in the URL": _with("@path", path="echo x"),
    "template: Chinese in the URL": _with("@path", path="echo你"),
    "template: a header": _with("@header", n="x"),
    "template: a header in Chinese": _with("@header", n="你好"),
    "template: a header without its parameter": _with("@header"),
    "template: a header from the connector": _with("@connectorheader"),
    "template: a header without its credential": _with("@poorheader"),
}

TEXTS: Exchanges = {
    "text_docs": _embed({"text_docs": ["a", "b"]}),
    "text_docs: a number": _embed({"text_docs": ["a", 5]}),
    "text_docs: a number with a point": _embed({"text_docs": [0.5]}),
    "text_docs: true": _embed({"text_docs": [True]}),
    "text_docs: null": _embed({"text_docs": ["a", None]}),
    "text_docs: null alone": _embed({"text_docs": [None]}),
    "text_docs: an object": _embed({"text_docs": [{"a": 1}]}),
    "text_docs: empty": _embed({"text_docs": []}),
    "text_docs: a string": _embed({"text_docs": "a"}),
    "text_docs: none": _embed({}),
    "text_docs: an empty string": _embed({"text_docs": [""]}),
    "text_docs: return_number": _embed({"text_docs": ["a"], "return_number": True}),
    "text_docs: target_response": _embed({"text_docs": ["a"], "target_response": ["sentence_embedding"]}),
    "text_docs: parameters": _embed({"text_docs": ["a"], "parameters": {"x": 1}}),
    "text_docs: without a function": _by("text_embedding", {"text_docs": ["a"]}),
    "text_docs: the model's path": _predict("@embedding", {"text_docs": ["a"]}),
    "text_docs: the parameters' way": _predict("@embedding", {"parameters": {"input": ["a"]}}),
    "algorithm remote": _by("remote", {"parameters": {"input": "hi"}}),
    "algorithm REMOTE": _by("REMOTE", {"parameters": {"input": "hi"}}),
    "algorithm sparse_encoding": _embed({"text_docs": ["a"]}, "sparse_encoding"),
    "algorithm text_similarity": _by("text_similarity", {"query_text": "q", "text_docs": ["a", "b"]}),
    "algorithm text_similarity: no query": _by("text_similarity", {"text_docs": ["a"]}),
    "algorithm question_answering": _by("question_answering", {"question": "q", "context": "c"}),
    "algorithm question_answering: no context": _by("question_answering", {"question": "q"}),
    "algorithm magic": _by("magic", {"parameters": {}}),
    "algorithm kmeans": _by("kmeans", {"parameters": {}}),
}

RESPONSES: Exchanges = {
    **{
        f"provider says {status}": _with("@path", path=f"status-{status}")
        for status in (201, 204, 301, 400, 401, 403, 404, 409, 422, 429, 500, 503)
    },
    "provider responds with text": _with("@path", path="text"),
    "provider responds with an array": _with("@path", path="array"),
    "provider responds with nothing": _with("@path", path="empty"),
    "provider is not there": _with("@nowhere"),
    **{f"method {name}": _with(f"@{name.lower()}") for name in ("GET", "PUT", "DELETE", "BREW")},
    "response_filter": _with("@echomodel", response_filter="$.method"),
    "response_filter without a match": _with("@echomodel", response_filter="$.absent"),
    "response_filter that is wrong": _with("@echomodel", response_filter="$["),
    "no predict action": _with("@batchonly"),
    "batch_predict without an action": _predict("@echomodel", {"parameters": {"input": "hi"}}, "_batch_predict"),
    "action_type batch_predict": _predict(
        "@echomodel", {"parameters": {"input": "hi"}, "action_type": "batch_predict"}
    ),
    "action_type magic": _predict("@echomodel", {"parameters": {"input": "hi"}, "action_type": "magic"}),
}

EXCHANGES: Exchanges = {**PARAMETERS, **TEMPLATES, **TEXTS, **RESPONSES}

"""Exchanges of whole predictions with a provider that shows what it was sent (`/echo`) or responds as its path says."""

from typing import Any

from integration_tests.interop.parity.connectors import ACTION, CONNECTOR, but
from integration_tests.interop.parity.exchanges import Exchanges, Step

EMBEDDING = but(
    ACTION,
    url="@provider/embeddings",
    request_body='{"input": ${parameters.input}}',
    pre_process_function="connector.pre_process.openai.embedding",
    post_process_function="connector.post_process.openai.embedding",
)


def _model(*actions: Any, **connector: Any) -> list[Step]:
    body = but(CONNECTOR, actions=list(actions or [ACTION]), **connector)
    return [
        ("POST /connectors/_create", body),
        ("POST /models/_register", {"name": "@name", "function_name": "remote", "connector_id": "@connector"}),
    ]


def _predict(body: Any, *actions: Any, path: str = "/models/@model/_predict", **connector: Any) -> list[Step]:
    return [*_model(*actions, **connector), (f"POST {path}", body), ("POST /models/@model/_undeploy", None)]


def _body(template: str, **parameters: Any) -> list[Step]:
    return _predict({"parameters": parameters}, but(ACTION, request_body=template))


def _by(algorithm: str, body: Any, *actions: Any) -> list[Step]:
    return _predict(body, *actions, path=f"/_predict/{algorithm}/@model")


def _responds(path: str, **parameters: Any) -> list[Step]:
    return _predict({"parameters": {"input": "hi", **parameters}}, but(ACTION, url=f"@provider{path}"))


PARAMETERS: Exchanges = {
    "predict": _predict({"parameters": {"input": "hi"}}),
    "predict: a trailing slash": _predict({"parameters": {"input": "hi"}}, path="/models/@model/_predict/"),
    "predict: no parameters": _predict({}),
    "predict: empty parameters": _predict({"parameters": {}}),
    "predict: null parameters": _predict({"parameters": None}),
    "predict: parameters in a string": _predict({"parameters": "hi"}),
    "predict: parameters in an array": _predict({"parameters": ["hi"]}),
    "predict: a parameter that is not used": _predict({"parameters": {"input": "hi", "color": "red"}}),
    "predict: a parameter of the connector is given": _predict({"parameters": {"input": "hi", "model": "other"}}),
    "predict: an unknown field": _predict({"parameters": {"input": "hi"}, "color": "red"}),
    "predict: an array": _predict([1]),
    "predict: not JSON": _predict(b"{not json"),
    "predict: cut off": _predict(b'{"parameters": {"input": "hi"'),
    "predict: an empty body": _predict(b""),
    "predict: without a body": _predict(None),
    "predict: a field twice": _predict(b'{"parameters": {"input": "a", "input": "b"}}'),
    "predict: a comment": _predict(b'{"parameters": /* x */ {"input": "hi"}} // y'),
    "predict: a brace more": _predict(b'{"parameters": {"input": "hi"}}}'),
    "predict: an unknown model": [("POST /models/nobody/_predict", {"parameters": {}})],
    "predict: Chinese": _predict({"parameters": {"input": "你好 😀"}}),
    "predict: a newline and quotes": _predict({"parameters": {"input": 'say "hi"\n\\o/ \t'}}),
    "predict: a number": _predict({"parameters": {"input": 5}}),
    "predict: true": _predict({"parameters": {"input": True}}),
    "predict: null": _predict({"parameters": {"input": None}}),
    "predict: an object": _predict({"parameters": {"input": {"a": 1}}}),
    "predict: an array of strings": _predict({"parameters": {"input": ["a"]}}),
    "predict: JSON in a string": _predict({"parameters": {"input": '{"a": 1}'}}),
    "predict: an empty string": _predict({"parameters": {"input": ""}}),
    "predict: a slash and a tag": _predict({"parameters": {"input": "</b>&'="}}),
    "predict: a placeholder in a parameter": _predict({"parameters": {"input": "${parameters.model}"}}),
    "predict: a credential in a parameter": _predict({"parameters": {"input": "${credential.key}"}}),
    "predict: it is disabled": [
        *_model(),
        ("PUT /models/@model", {"is_enabled": False}),
        ("POST /models/@model/_predict", {"parameters": {"input": "hi"}}),
    ],
    "predict: input that its interface refuses": [
        *_model(),
        ("PUT /models/@model", {"interface": {"input": {"type": "object", "required": ["magic"]}}}),
        ("POST /models/@model/_predict", {"parameters": {"input": "hi"}}),
        ("POST /models/@model/_undeploy", None),
    ],
    "predict: input that its guardrail refuses": [
        *_model(),
        ("PUT /models/@model", {"guardrails": {"type": "local_regex", "input_guardrail": {"regex": [".*secret.*"]}}}),
        ("POST /models/@model/_predict", {"parameters": {"input": "a secret here"}}),
        ("POST /models/@model/_predict", {"parameters": {"input": "hi"}}),
        ("POST /models/@model/_undeploy", None),
    ],
    "predict: it may not deploy itself": [
        *_model(),
        ("PUT /models/@model", {"deploy_setting": {"is_auto_deploy_enabled": False}}),
        ("POST /models/@model/_predict", {"parameters": {"input": "hi"}}),
    ],
}

TEMPLATES: Exchanges = {
    "template: without placeholders": _body('{"a": 1}'),
    "template: a default": _body('{"t": ${parameters.t:-0.7}}'),
    "template: a default is not needed": _body('{"t": ${parameters.t:-0.7}}', t=1),
    "template: a placeholder without a value": _body('{"t": "${parameters.absent}"}'),
    "template: a bare placeholder without a value": _body('{"t": ${parameters.absent}}'),
    "template: messages": _body('{"m": ${parameters.m}}', m=[{"role": "user", "content": "hi"}]),
    "template: messages in a string": _body('{"m": ${parameters.m}}', m='[{"role": "user", "content": "hi"}]'),
    "template: a bare string": _body('{"m": ${parameters.m}}', m="hi"),
    "template: a bare small number": _body('{"m": ${parameters.m}}', m=0.0001),
    "template: a bare large number": _body('{"m": ${parameters.m}}', m=2**53 + 1),
    "template: a bare boolean": _body('{"m": ${parameters.m}}', m=True),
    "template: a bare null": _body('{"m": ${parameters.m}}', m=None),
    "template: a quoted number": _body('{"m": "${parameters.m}"}', m=5),
    "template: a quoted array": _body('{"m": "${parameters.m}"}', m=["a"]),
    "template: within a string": _body('{"m": "Q: ${parameters.m} A:"}', m='say "hi"'),
    "template: a credential in the body": _body('{"m": "${credential.key}"}'),
    "template: a name with a point": _body('{"m": "${parameters.a.b}"}', **{"a.b": "x"}),
    "template: no JSON": _body("${parameters.m}", m="hi"),
    "template: no body": _predict({"parameters": {}}, but(ACTION, "request_body")),
    "template: the URL": _predict(
        {"parameters": {"input": "hi", "p": "x"}}, but(ACTION, url="@provider/echo/${parameters.p}")
    ),
    "template: a blank in the URL": _predict(
        {"parameters": {"input": "hi", "p": "x y"}}, but(ACTION, url="@provider/echo/${parameters.p}")
    ),
    "template: a header": _predict(
        {"parameters": {"input": "hi", "n": "x"}}, but(ACTION, headers={"X-N": "${parameters.n}"})
    ),
    "template: a header from the connector": _predict(
        {"parameters": {"input": "hi"}}, but(ACTION, headers={"X-N": "${parameters.model}"})
    ),
    "template: a header without a credential": _predict(
        {"parameters": {"input": "hi"}}, but(ACTION, headers={"X-N": "${credential.absent}"})
    ),
    "template: a header that is true": _predict({"parameters": {"input": "hi"}}, but(ACTION, headers={"X-B": True})),
    "template: a header in Chinese": _predict({"parameters": {"input": "hi"}}, but(ACTION, headers={"X-N": "你好"})),
}

TEXTS: Exchanges = {
    "text_docs": _by("text_embedding", {"text_docs": ["a", "b"]}, EMBEDDING),
    "text_docs: a number": _by("text_embedding", {"text_docs": ["a", 5]}, EMBEDDING),
    "text_docs: a number with a point": _by("text_embedding", {"text_docs": [0.5]}, EMBEDDING),
    "text_docs: true": _by("text_embedding", {"text_docs": [True]}, EMBEDDING),
    "text_docs: null": _by("text_embedding", {"text_docs": ["a", None]}, EMBEDDING),
    "text_docs: null alone": _by("text_embedding", {"text_docs": [None]}, EMBEDDING),
    "text_docs: an object": _by("text_embedding", {"text_docs": [{"a": 1}]}, EMBEDDING),
    "text_docs: empty": _by("text_embedding", {"text_docs": []}, EMBEDDING),
    "text_docs: a string": _by("text_embedding", {"text_docs": "a"}, EMBEDDING),
    "text_docs: none": _by("text_embedding", {}, EMBEDDING),
    "text_docs: an empty string": _by("text_embedding", {"text_docs": [""]}, EMBEDDING),
    "text_docs: return_number": _by("text_embedding", {"text_docs": ["a"], "return_number": True}, EMBEDDING),
    "text_docs: target_response": _by(
        "text_embedding", {"text_docs": ["a"], "target_response": ["sentence_embedding"]}, EMBEDDING
    ),
    "text_docs: without a function": _by("text_embedding", {"text_docs": ["a"]}),
    "text_docs: parameters": _by("text_embedding", {"text_docs": ["a"], "parameters": {"x": 1}}, EMBEDDING),
    "text_docs: the model's path": _predict({"text_docs": ["a"]}, EMBEDDING),
    "text_docs: the parameters' way": _predict({"parameters": {"input": ["a"]}}, EMBEDDING),
    "algorithm remote": _by("remote", {"parameters": {"input": "hi"}}),
    "algorithm REMOTE": _by("REMOTE", {"parameters": {"input": "hi"}}),
    "algorithm sparse_encoding": _by("sparse_encoding", {"text_docs": ["a"]}, EMBEDDING),
    "algorithm text_similarity": _by("text_similarity", {"query_text": "q", "text_docs": ["a", "b"]}),
    "algorithm text_similarity: no query": _by("text_similarity", {"text_docs": ["a"]}),
    "algorithm question_answering": _by("question_answering", {"question": "q", "context": "c"}),
    "algorithm question_answering: no context": _by("question_answering", {"question": "q"}),
    "algorithm magic": _by("magic", {"parameters": {}}),
    "algorithm kmeans": _by("kmeans", {"parameters": {}}),
}

RESPONSES: Exchanges = {
    **{
        f"provider says {status}": _responds(f"/status/{status}")
        for status in (201, 204, 301, 400, 401, 403, 404, 422, 429, 500, 503)
    },
    "provider responds with text": _responds("/text"),
    "provider responds with an array": _responds("/array"),
    "provider responds with nothing": _responds("/empty"),
    "provider is not there": _predict({"parameters": {"input": "hi"}}, but(ACTION, url="http://127.0.0.1:1/")),
    **{
        f"method {method}": _predict({"parameters": {"input": "hi"}}, but(ACTION, method=method))
        for method in ("GET", "get", "PUT", "DELETE", "BREW")
    },
    "response_filter": _responds("/echo", response_filter="$.method"),
    "response_filter without a match": _responds("/echo", response_filter="$.absent"),
    "response_filter that is wrong": _responds("/echo", response_filter="$["),
    "no predict action": _predict({"parameters": {"input": "hi"}}, but(ACTION, action_type="batch_predict")),
    "batch_predict without an action": _predict({"parameters": {"input": "hi"}}, path="/models/@model/_batch_predict"),
    "action_type batch_predict": _predict({"parameters": {"input": "hi"}, "action_type": "batch_predict"}),
    "action_type magic": _predict({"parameters": {"input": "hi"}, "action_type": "magic"}),
}

EXCHANGES: Exchanges = {**PARAMETERS, **TEMPLATES, **TEXTS, **RESPONSES}

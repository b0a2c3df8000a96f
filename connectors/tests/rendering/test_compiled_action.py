"""The provider's request, from a connector's action and a caller's parameters."""

import json
from typing import Any

import pytest

from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT, OPENAI_CHAT_PLAIN, OpenAIChat
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction, ProviderRequest
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText

URL = "https://${parameters.endpoint}/v1/${parameters.model}/chat"


def render(
    request: dict[str, str],
    *,
    own: dict[str, str] | None = None,
    credential: dict[str, str] | None = None,
    stream: StreamSpec | None = None,
    streams_as: StreamSpec | None = None,
    **action: Any,
) -> ProviderRequest:
    sent = {"url": "https://h/p", "method": "POST", "request_body": '{"p":"${parameters.p}"}'}
    given: dict[str, Any] = {"action_type": "PREDICT", **sent, **action}
    compiled = CompiledAction.compile(
        Action(**given),
        ConnectorParameters.compile(own or {}),
        credential or {},
        stream=streams_as,
    )
    return compiled.render({"p": "x", **request}, stream)


def spec(**enable: Any) -> StreamSpec:
    return StreamSpec("s", Enable(**enable), SSEFraming, OpenAIChat)


def refusal(request: dict[str, str] | None = None, **given: Any) -> str:
    with pytest.raises(InvalidRequest) as caught:
        render(request or {}, **given)
    return caught.value.reason


# The URL


ARN = "arn:aws:bedrock:us-east-1:1:inference-profile/us.meta.llama3"
BEDROCK_ARN = "arn:aws:bedrock:us-east-1:1:inference-profile%2Fus.meta.llama3"


@pytest.mark.parametrize("call", ["invoke", "converse", "converse-stream", "invoke-with-response-stream"])
@pytest.mark.parametrize(
    ("model", "own", "request_"),
    [(ARN, {}, {}), ("${parameters.m}", {"m": ARN}, {}), ("${parameters.m}", {}, {"m": ARN})],
)
def test_the_arn_of_a_bedrock_model_is_one_segment_of_its_path(
    call: str, model: str, own: dict[str, str], request_: dict[str, str]
) -> None:
    url = render(request_, own=own, url=f"https://h/model/{model}/{call}").url
    assert url == f"https://h/model/{BEDROCK_ARN}/{call}"


def test_what_a_request_fills_into_one_segment_of_a_path_stays_in_it() -> None:
    own, url = {"base": "api/llm"}, "https://h/${parameters.base}/deployments/${parameters.d}/run/${parameters.m}"
    filled = render({"d": "a/b", "m": "@cf/meta/llama"}, own=own, url=url).url
    assert filled == "https://h/api/llm/deployments/a%2Fb/run/@cf/meta/llama"


def test_a_url_longer_than_servers_take_is_refused() -> None:
    assert "more than 16384 characters" in refusal({"model": "x" * 16_384}, own={"endpoint": "h"}, url=URL)


@pytest.mark.parametrize(
    "value", ["a/../../b", "x?y=1", "x#y", "x y", "x\r\nHost: evil", "é", "%2e%2e", "@evil.example"]
)
def test_a_requests_value_cannot_become_another_path_or_host(value: str) -> None:
    try:
        url = render({"model": value}, own={"endpoint": "h"}, url=URL).url
    except InvalidRequest as error:
        assert value not in error.reason
        return
    assert url.startswith("https://h/v1/")
    assert url.endswith("/chat")
    assert not set(url) & set("?# \r\n")
    assert url.isascii()


@pytest.mark.parametrize("url", ["http://[", "https://[::1/x", "http://]", "http://h\u2100/"])
def test_a_url_that_cannot_be_parsed_is_refused(url: str) -> None:
    assert "trying to create uri" in refusal({}, url=url)


def test_half_of_a_surrogate_pair_in_the_url_or_in_a_header_is_refused() -> None:
    assert "surrogate" in refusal({"model": "\ud83d"}, own={"endpoint": "h"}, url=URL)
    assert "surrogate" in refusal({"model": "\ud83d"}, headers={"X-Model": "${parameters.model}"})


def test_a_connectors_value_stands_in_the_url_as_it_is() -> None:
    request = render({}, own={"endpoint": "h:8080/base", "model": "a%2Fb"}, url=URL)
    assert request.url == "https://h:8080/base/v1/a%2Fb/chat"


@pytest.mark.parametrize("url", ["ftp://h/p", "file:///etc/passwd", "h/p", "https:///p", "https://h/a/../b"])
def test_what_is_no_http_address_is_refused(url: str) -> None:
    assert refusal(url=url)


# Values that are escaped already, and placeholders that stay


ESCAPED = {"no_escape_params": "other, p"}


@pytest.mark.parametrize(
    ("body", "own", "value", "sent"),
    [
        ('{"p":"${parameters.p}"}', {}, r"a \"b\"\n", {"p": 'a "b"\n'}),
        ('{"p":"${parameters.p}"}', {}, 'a "b"', {"p": 'a "b"'}),
        ('{"p":"${parameters.p}"}', {}, r"\d", {"p": r"\d"}),
        ('{"q":"${parameters.q}"}', {"q": "ctx: ${parameters.p}"}, r"a \"b\"", {"q": 'ctx: a "b"'}),
        ('{"m":[${parameters.p:-}{"a":1}]}', {}, '{"b":2},', {"m": [{"b": 2}, {"a": 1}]}),
        ('{"m":[${parameters.p:-}{"a":1}]}', {}, "", {"m": [{"a": 1}]}),
        ('{"a":1${parameters.p:-}}', {}, ', "tools": [{"b":2}]', {"a": 1, "tools": [{"b": 2}]}),
    ],
)
@pytest.mark.parametrize("stream", [None, OPENAI_CHAT_PLAIN])
def test_a_value_that_no_escape_params_lists_is_not_escaped_again(
    body: str, own: dict[str, str], value: str, sent: dict[str, Any], stream: StreamSpec | None
) -> None:
    rendered = json.loads(render({"p": value, **ESCAPED}, own=own, request_body=body, stream=stream).body)
    assert rendered == (sent if stream is None else {**sent, "stream": True})


@pytest.mark.parametrize("value", ['1],"model":"other","x":[2', '"a":1}', '{"role"', ', "a": 2'])
@pytest.mark.parametrize("stream", [None, OPENAI_CHAT_PLAIN])
def test_a_part_of_an_array_or_object_changes_nothing_outside_of_it(value: str, stream: StreamSpec | None) -> None:
    for body in ('{"a":1,"m":[${parameters.p}]}', '{"a":1${parameters.p}}'):
        assert "JSON" in refusal({"p": value, **ESCAPED}, request_body=body, stream=stream)


def test_only_a_value_that_is_listed_may_be_a_part_of_an_array() -> None:
    assert "[p]" in refusal({"p": '{"a":1},'}, request_body='[${parameters.p:-}{"b":2}]')


def test_a_placeholder_in_quotes_stays_if_missing_parameters_are_not_checked() -> None:
    body, skip = '{"p":"${parameters.q}","r":"${parameters.r:-d}"}', {"skip_validating_missing_parameters": "true"}
    for given, own in ((skip, {}), ({}, skip)):
        assert json.loads(render(given, own=own, request_body=body).body) == {"p": "${parameters.q}", "r": "d"}
    for elsewhere in ({"request_body": '{"p":${parameters.q}}'}, {"url": "https://h/${parameters.q}"}):
        assert "not filled in payload: q" in refusal(skip, **elsewhere)


# Headers


def test_credentials_fill_headers_only() -> None:
    credential = {"k": "se${parameters.p}cret"}
    request = render({}, credential=credential, headers={"Authorization": "Bearer ${credential.k}"})
    assert request.headers["Authorization"] == "Bearer se${parameters.p}cret"
    assert "request_body has the placeholder" in refusal(credential=credential, request_body='{"p":"${credential.k}"}')


def test_a_missing_credential_is_named() -> None:
    assert "[k]" in refusal(headers={"A": "${credential.k}"})


@pytest.mark.parametrize("name", ["Authorization", "X-API-Key", "Host", "cookie", "X-Forwarded-For"])
def test_a_request_cannot_say_who_calls(name: str) -> None:
    headers = {name: "v ${parameters.who}"}
    assert render({"who": "me"}, own={"who": "us"}, headers=headers).headers[name] == "v us"
    assert name in refusal({"who": "me"}, headers=headers)


def test_a_request_may_fill_other_headers() -> None:
    assert render({"who": "me"}, headers={"X-Folder": "${parameters.who}"}).headers["X-Folder"] == "me"


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\nb", "\x00", "x" * 9000])
def test_a_header_that_breaks_the_request_is_refused(value: str) -> None:
    assert refusal({"who": value}, headers={"X-Folder": "${parameters.who}"}).startswith("Header")


def test_the_content_type_is_json_unless_the_connector_says_otherwise() -> None:
    assert render({}).headers == {"Content-Type": "application/json"}
    assert render({}, headers={"content-type": "text/plain"}).headers == {"content-type": "text/plain"}


# The body


def test_numbers_keep_their_text() -> None:
    body = '{"t":${parameters.t},"p":"${parameters.p}"}'
    assert render({"t": JsonText("0.0001")}, request_body=body).body == b'{"t":0.0001,"p":"x"}'
    assert render({"t": JsonText("1E7")}, request_body=body, stream=spec(body={"s": 1})).body == (
        b'{"t":1E7,"p":"x","s":1}'
    )


def test_a_body_that_is_no_json_is_refused_without_repeating_it() -> None:
    reason = refusal({"p": "secret prompt"}, request_body='{"p":"${parameters.p}"')
    assert reason.startswith("Invalid payload")
    assert "secret prompt" not in reason


def test_lines_of_json_are_a_body() -> None:
    body = '{"a":1}\n{"b":"${parameters.p}"}\n'
    assert render({}, request_body=body).body == b'{"a":1}\n{"b":"x"}\n'


def test_without_a_template_the_parameter_http_body_is_the_body() -> None:
    assert render({"http_body": '{"a":1}'}, request_body=None).body == b'{"a":1}'
    assert "Content length is 0" in refusal(request_body=None)


def test_get_needs_no_body() -> None:
    assert render({}, request_body=None, method="GET").body == b""
    assert "unsupported http method" in refusal(method="TRACE")


def test_the_charset_parameter_encodes_the_body() -> None:
    assert render({"p": "é", "charset": "iso-8859-1"}).body == '{"p":"é"}'.encode("iso-8859-1")
    assert "é" not in refusal({"p": "世é", "charset": "iso-8859-1"})
    assert refusal({"charset": "no-such"})


# Turning the stream on


@pytest.mark.parametrize(
    "body",
    [
        '{"p":"x"}',
        '{"stream":false,"p":"x"}',
        '{"p":"x","stream":"no","stream_options":{"include_usage":false}}',
        '{\n  "stream_options": null,\n  "p": "x"\n}',
    ],
)
def test_stream_and_its_options_are_set_and_never_doubled(body: str) -> None:
    sent = render({}, request_body=body, stream=OPENAI_CHAT).body.decode()
    assert json.loads(sent) == {"p": "x", "stream": True, "stream_options": {"include_usage": True}}
    assert (sent.count('"stream"'), sent.count('"stream_options"')) == (1, 1)


def test_options_that_a_server_refuses_are_dropped() -> None:
    sent = render({}, request_body='{"p":"x","stream_options":{}}', stream=OPENAI_CHAT_PLAIN).body
    assert json.loads(sent) == {"p": "x", "stream": True}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"p":"x","parameters":{"a":1E2,"b":false}}', '{"p":"x","parameters":{"a":1E2,"b":true}}'),
        ('{"p":"x"}', '{"p":"x","parameters":{"b":true}}'),
    ],
)
def test_fields_of_an_object_in_the_body_are_set(body: str, expected: str) -> None:
    assert render({}, request_body=body, stream=spec(inner_body={"parameters": {"b": True}})).body.decode() == expected


def test_an_object_in_the_body_that_is_none_cannot_be_streamed() -> None:
    inner = spec(inner_body={"parameters": {"b": True}})
    assert "cannot be streamed" in refusal(request_body='{"parameters":[1]}', stream=inner)


@pytest.mark.parametrize(
    ("url", "pairs", "expected"),
    [
        ("https://h/model/m/invoke", (("/invoke", "/invoke-x"),), "https://h/model/m/invoke-x"),
        ("https://h/model/m/invoke-x", (("/invoke", "/invoke-x"),), "https://h/model/m/invoke-x"),
        ("https://h/v2/models/infer/generate", (("/infer", "/infer_s"), ("/generate", "/generate_s")),
         "https://h/v2/models/infer/generate_s"),
        ("https://h/v2/models/infer/generate_s", (("/infer", "/infer_s"), ("/generate", "/generate_s")),
         "https://h/v2/models/infer/generate_s"),
        ("https://invoke.h/invoke?a=/invoke", (("/invoke", "/x"),), "https://invoke.h/x?a=/invoke"),
        ("https://h/ask/now", (("/ask", "/ask_live"),), "https://h/ask_live/now"),
        ("https://h/other", (("/ask", "/ask_live"),), "https://h/other"),
    ],
)  # fmt: skip
def test_the_path_is_changed_where_it_should_be(url: str, pairs: tuple[tuple[str, str], ...], expected: str) -> None:
    assert render({}, url=url, stream=spec(url=pairs)).url == expected


def test_query_and_headers_are_set_and_not_doubled() -> None:
    request = render(
        {}, url="https://h/p?alt=json&key=1", headers={"accept": "application/json"},
        stream=spec(query={"alt": "sse"}, headers={"Accept": "text/event-stream"}),
    )  # fmt: skip
    assert request.url == "https://h/p?key=1&alt=sse"
    assert {name: value for name, value in request.headers.items() if name.lower() == "accept"} == {
        "Accept": "text/event-stream"
    }


def test_a_body_that_is_no_object_cannot_be_streamed() -> None:
    assert "cannot be streamed" in refusal(request_body='["${parameters.p}"]', stream=OPENAI_CHAT)


# Whole responses


CHAT = "openai/v1/chat/completions"


@pytest.mark.parametrize(
    ("preset", "template", "request_", "body"),
    [
        ("ollama/api/generate", '{"prompt":"${parameters.p}"}', {}, {"prompt": "x", "stream": False}),
        ("ollama/api/chat", '{"messages":${parameters.m}}', {"m": "[1]"}, {"messages": [1], "stream": False}),
        ("ollama/api/chat", '{"stream":false,"p":1}', {}, {"stream": False, "p": 1}),
        ("ollama/api/chat", '{"stream":true,"p":1}', {}, {"stream": False, "p": 1}),
        (CHAT, '{"stream":true,"stream_options":{"a":1},"p":1}', {}, {"stream": False, "p": 1}),
        (CHAT, '{"stream":${parameters.s},"p":1}', {"s": "true"}, {"stream": False, "p": 1}),
        (CHAT, '{"stream":false,"p":"stream"}', {}, {"stream": False, "p": "stream"}),
        (CHAT, '{"p":"\\"stream\\":true"}', {}, {"p": '"stream":true'}),
        (CHAT, '{"p":{"stream":true}}', {}, {"p": {"stream": True}}),
        ("anthropic/v1/messages", '{"stream":true,"p":1}', {}, {"stream": False, "p": 1}),
        ("bedrock/invoke", '{"stream":true,"p":1}', {}, {"p": 1}),
        ("gemini/v1beta/generatecontent", '{"p":"${parameters.p}"}', {}, {"p": "x"}),
    ],
)  # fmt: skip
def test_a_request_for_a_whole_response_asks_for_no_stream(
    preset: str, template: str, request_: dict[str, str], body: object
) -> None:
    request_ = {name: JsonText(value) for name, value in request_.items()}
    spec = SHIPPED.presets[preset]
    whole = render(request_, request_body=template, streams_as=spec)
    assert json.loads(whole.body) == body
    streamed = render(request_, request_body=template, streams_as=spec, stream=spec)
    assert streamed == render(request_, request_body=template, stream=spec)


@pytest.mark.parametrize(
    ("preset", "url", "expected"),
    [
        ("gemini/v1beta/generatecontent", "https://h/m:streamGenerateContent?key=k&alt=sse", "https://h/m:generateContent?key=k"),
        ("gemini/v1beta/generatecontent", "https://h/m:generateContent?alt=sse", "https://h/m:generateContent"),
        ("bedrock/converse", "https://h/model/m/converse-stream", "https://h/model/m/converse"),
        ("bedrock/converse", "https://h/model/m/invoke", "https://h/model/m/invoke"),
        ("bedrock/invoke", "https://h/model/m/invoke-with-response-stream", "https://h/model/m/invoke"),
        ("huggingface/generate_stream", "https://h/generate_stream", "https://h/generate"),
        ("v2/models/infer_stream", "https://h/v2/models/m/infer_stream", "https://h/v2/models/m/infer"),
        (CHAT, "https://h/v1/chat/completions?alt=sse", "https://h/v1/chat/completions?alt=sse"),
    ],
)  # fmt: skip
def test_the_url_of_a_stream_becomes_that_of_a_whole_response(preset: str, url: str, expected: str) -> None:
    assert render({}, url=url, streams_as=SHIPPED.presets[preset]).url == expected


def test_the_header_of_a_stream_is_left_out_of_a_request_for_a_whole_response() -> None:
    spec = SHIPPED.presets["dashscope/generation"]
    request = render({}, headers={"x-dashscope-sse": "enable", "X-A": "b"}, streams_as=spec)
    assert "x-dashscope-sse" not in {name.lower() for name in request.headers}
    assert request.headers["X-A"] == "b"


@pytest.mark.parametrize("body", ['{"p":1}\n{"p":2}', "[1]"])
def test_a_body_that_no_stream_can_be_turned_off_in_stays_as_it_is(body: str) -> None:
    assert render({}, request_body=body, streams_as=SHIPPED.presets["ollama/api/chat"]).body.decode() == body


def test_a_batch_job_is_sent_as_its_template_says() -> None:
    spec = SHIPPED.presets["ollama/api/chat"]
    assert render({}, request_body='{"p":1}', action_type="BATCH_PREDICT", streams_as=spec).body == b'{"p":1}'

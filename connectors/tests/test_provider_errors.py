"""Errors of providers, in the forms in which they write them."""

import json
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import CONTEXT_LENGTH_EXCEEDED, ProviderWords, UpstreamError
from opensearch_ml_stream.connectors.provider_errors import (
    MAX_ERROR_BYTES,
    error_in,
    error_in_body,
    error_without_result,
    read_error,
    read_error_body,
)

PREFIX = "Error from remote service: "
NO_WORDS = ProviderWords()
RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "12.3s"}
GOOGLE = {"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED", "details": [RETRY_INFO]}}
UNKNOWN_OPERATION = {"Output": {"__type": "com.amazon.coral.service#UnknownOperationException"}, "Version": "1.0"}
FASTAPI = {
    "detail": [
        {"type": "missing", "loc": ["body", "messages", 0, "role"], "msg": "Field required", "input": "a prompt"},
        {"type": "extra", "loc": ["body", "foo"], "msg": "Not permitted"},
    ]
}


def shown(error: UpstreamError) -> tuple[str, int | None, ProviderWords]:
    return error.reason.removeprefix(PREFIX), error.provider_status, error.provider


@pytest.mark.parametrize(
    ("value", "message", "status", "words"),
    [
        ({"error": {"message": "no", "type": "invalid_request_error", "param": "n", "code": "bad_value"}},
         "no", 400, ProviderWords("bad_value", "invalid_request_error", "n")),
        ({"error": {"message": "broke", "type": "insufficient_quota", "param": None, "code": "insufficient_quota"}},
         "broke", 429, ProviderWords("insufficient_quota", "insufficient_quota")),
        ({"type": "error", "code": "server_is_overloaded", "message": "busy", "param": None},
         "busy", 503, ProviderWords("server_is_overloaded")),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "r"},
         "Overloaded", 529, ProviderWords(type="overloaded_error")),
        (GOOGLE, "quota", 429, ProviderWords("RESOURCE_EXHAUSTED")),
        ([GOOGLE], "quota", 429, ProviderWords("RESOURCE_EXHAUSTED")),
        (UNKNOWN_OPERATION, "UnknownOperationException", 404, ProviderWords("UnknownOperationException")),
        ({"__type": "ValidationException", "Message": "bad"}, "bad", 400, ProviderWords("ValidationException")),
        ({"error": {"code": "content_filter", "message": "no", "innererror": {"code": "Responsible"}, "status": 400}},
         "no", 400, ProviderWords("content_filter")),
        ({"statusCode": 401, "message": "no key"}, "no key", 401, NO_WORDS),
        ({"message": "invalid api token"}, "invalid api token", None, NO_WORDS),
        ({"detail": "Not Found"}, "Not Found", None, NO_WORDS),
        (FASTAPI, "messages.0.role: Field required; foo: Not permitted", None, ProviderWords(param="messages.0.role")),
        ({"object": "error", "message": FASTAPI, "type": "invalid_request_error", "code": None},
         "messages.0.role: Field required; foo: Not permitted", 400,
         ProviderWords(None, "invalid_request_error", "messages.0.role")),
        ({"object": "error", "message": "gone", "type": "NotFoundError", "code": 404},
         "gone", 404, ProviderWords(type="NotFoundError")),
        ({"code": "Throttling.RateQuota", "message": "slow", "request_id": "r"},
         "slow", 429, ProviderWords("Throttling.RateQuota")),
        ({"success": False, "errors": [{"code": 10000, "message": "Auth"}, {"message": "more"}], "result": None},
         "Auth; more", None, ProviderWords("10000")),
        ({"errors": [{"code": "token_quota_reached", "message": "quota"}], "status_code": 403},
         "quota", 403, ProviderWords("token_quota_reached")),
        ({"error": "Model is overloaded", "error_type": "overloaded"},
         "Model is overloaded", 429, ProviderWords(type="overloaded")),
        ({"error": "out of memory"}, "out of memory", None, NO_WORDS),
        ({"error": ["a", "b"]}, "a; b", None, NO_WORDS),
        ({"error": "Unauthorized", "message": "no token", "statusCode": 401},
         "no token", 401, ProviderWords("Unauthorized")),
        ({"error": "It failed badly", "message": "twice"}, "It failed badly: twice", None, NO_WORDS),
        ({"type": "about:blank", "title": "Bad", "detail": "no such model", "status": 404},
         "no such model", 404, NO_WORDS),
        ({"error_code": 336003, "error_msg": "no"}, "no", None, ProviderWords("336003")),
        ({"base_resp": {"status_code": 1008, "status_msg": "no balance"}}, "no balance", None, ProviderWords("1008")),
        ({"error": {"code": "429", "message": "slow"}}, "slow", 429, NO_WORDS),
        ({"error": {"root_cause": [], "type": "status_exception", "reason": "no"}, "status": 404},
         "no", 404, ProviderWords(type="status_exception")),
        ({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": json.dumps(
            {"error": {"message": "no", "type": "t", "code": "c", "param": "p"}}), "provider_name": "x"}}},
         "Provider returned error: no", 400, ProviderWords("c", "t", "p")),
        ({"error": {"message": "Provider returned error", "code": 502, "metadata": {"raw": "<html>"}}},
         "Provider returned error: <html>", 502, NO_WORDS),
        ({"error": {"code": "server_error"}}, "server_error", 500, ProviderWords("server_error")),
        ({"error": {"a": 1}}, '{"a":1}', None, NO_WORDS),
        ("full", "full", None, NO_WORDS),
        (None, "it gives no reason", None, NO_WORDS),
        ({"error": {"message": "no", "code": True, "type": 7, "param": ["x"], "status": "failed"}},
         "no", None, NO_WORDS),
    ],
)  # fmt: skip
def test_an_error_is_read_in_every_form(value: Any, message: str, status: int | None, words: ProviderWords) -> None:
    assert shown(read_error(value)) == (message, status, words)
    assert shown(read_error_body(json.dumps(value).encode(), 418))[1:] == (418, words)


def test_googles_delay_is_rounded_up_to_seconds() -> None:
    assert read_error([GOOGLE]).retry_after == "13"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>down</html>\n", PREFIX + "<html>down</html>"),
        (b'{"foo": 1}', PREFIX + '{"foo": 1}'),
        (b'{"error": {"message": "cut of', PREFIX + '{"error": {"message": "cut of'),
        (b'"text"', PREFIX + "text"),
        (b'id:1\nevent:error\n:HTTP_STATUS/400\ndata:{"code":"c","message":"no"}\n\n', PREFIX + "no"),
        (b'data: {"error":\ndata: {"message": "no"}}\n', PREFIX + "no"),
        (b"data: gone\n", PREFIX + "gone"),
        (b"caf\xe9", PREFIX + "caf\N{REPLACEMENT CHARACTER}"),
        (b" ", "Remote service returned error status 503 with empty body"),
    ],
)
def test_a_body_is_shown_as_it_is_but_for_what_is_known_of_it(body: bytes, reason: str) -> None:
    assert read_error_body(body, 503).reason == reason


def test_the_status_and_the_code_of_a_responses_head_come_first() -> None:
    error = read_error_body(b'{"message": "no", "status": 500}', 404, "ResourceNotFoundException:http://a/")
    assert shown(error) == ("no", 404, ProviderWords("ResourceNotFoundException"))


@pytest.mark.parametrize("depth", [4, 900])
def test_of_an_error_that_is_deep_or_wide_the_beginning_is_read(depth: int) -> None:
    value: Any = {"message": "inmost"}
    for _ in range(depth):
        value = [{"error": value}]
    assert "inmost" in read_error(value).reason or "too deeply" in read_error(value).reason
    assert read_error({"errors": [{"message": "m" * 10}] * 9999}).reason == PREFIX + "; ".join(["m" * 10] * 8)
    assert len(read_error({"error": {"message": "m", "code": "c" * 999}}).provider.code or "") == 200


TOO_LONG = [
    {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "prompt is too long: 9 > 8"}}},
    {"error": {"message": "x", "type": "invalid_request_error", "code": "context_length_exceeded"}},
    {"error": {"message": "Your input exceeds the context window of this model. Please adjust your input"}},
    {"error": {"message": "This model's maximum context length is 4096 tokens. However, you requested 5000"}},
    {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8 maximum"}},
    {"error": {"message": "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"}},
    {"error": {"code": 400, "message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."}},
    {"__type": "ValidationException", "message": "Input is too long for requested model."},
    {"message": "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000"},
    {"error": {"message": "Prompt contains 9 tokens, too large for model with 8 maximum context length"}},
    {"error": {"code": 400, "message": "x", "type": "exceed_context_size_error", "n_ctx": 4096}},
    {"error": "the request exceeds the available context size, try increasing it"},
    {"error": "prompt too long; exceeded max context length by 9 tokens"},
    {"error": "the input length exceeds the context length"},
    {"error": "`inputs` must have less than 1024 tokens. Given: 2000", "error_type": "validation"},
    {"error": {"message": "This model's maximum prompt length is 8 but the request contains 9 tokens."}},
    {"message": "The input (9 tokens) is longer than the model's context length (8 tokens)."},
    {"message": "Please reduce the length of the messages or completion."},
    {"errors": [{"code": "x", "message": "the number of input tokens 9 cannot exceed the total tokens limit 8"}]},
    {"error": {"code": "model_max_prompt_tokens_exceeded", "message": "x"}},
    {"code": "InvalidParameter", "message": "Range of input length should be [1, 129024]"},
    {"error": {"message": "Invalid request: Your request exceeded model token limit: 8192"}},
    {"error": {"message": "invalid params, context window exceeds limit (2013)"}},
]  # fmt: skip


@pytest.mark.parametrize("value", TOO_LONG)
def test_a_conversation_that_is_too_long_has_one_code_and_is_the_callers_to_mend(value: Any) -> None:
    for error in (read_error(value), read_error_body(json.dumps(value).encode(), 500)):
        assert (error.provider.code, error.status) == (CONTEXT_LENGTH_EXCEEDED, 400)
    assert read_error(value).provider_status in (400, 422)


@pytest.mark.parametrize(
    "value",
    [
        {"__type": "ThrottlingException", "message": "Too many tokens, please wait before trying again."},
        {"error": {"code": "rate_limit_exceeded", "message": "Request too large: too many tokens per minute"}},
        {"message": "too many tokens: max tokens must be less than or equal to 4096"},
        {"error": {"message": "max_tokens is too large: 9. This model supports at most 8 completion tokens"}},
        {"message": "The maximum tokens you requested exceeds the model limit of 4096."},
        {"error": {"code": 403, "message": "a prompt of that context length exceeds what your plan allows"}},
    ],
)
def test_too_many_tokens_of_another_kind_are_no_conversation_that_is_too_long(value: Any) -> None:
    assert read_error(value).provider.code != CONTEXT_LENGTH_EXCEEDED


ERRORS: list[Any] = [
    {"error": {"message": "no"}},
    {"error": "no"},
    {"error": "no", "code": 7, "status": 500, "request_id": "r"},
    {"error": ["no"]},
    [{"error": {"message": "no"}}],
    {"error": {"message": "no"}, "user_id": "u", "is_error": True, "choices": [], "usage": {"a": 1}},
    {"error": {"code": "no"}},
    {"object": "error", "message": "no"},
    {"type": "error", "error": {"message": "no"}},
    {"success": False, "errors": [{"message": "no"}], "messages": [], "result": None},
    {"base_resp": {"status_code": 1008, "status_msg": "no"}, "vectors": None},
    {"error_code": 17, "error_msg": "no"},
    {"__type": "a.b#ThrottlingException", "message": "no"},
    UNKNOWN_OPERATION,
]
MAYBE_ERRORS: list[Any] = [
    {"detail": "no"},
    {"detail": [{"msg": "no"}]},
    {"message": "no"},
    {"msg": "no", "code": 500},
    {"code": "InternalError"},
    {"errors": ["no"], "kind": "x"},
    {"status": 500, "title": "no"},
    {"error": "no", "choices": [{"text": "a"}]},
    {"error": {"message": "no"}, "prediction": 0.25},
    {"error": {"type": "rmse", "value": 0.1}, "kind": "x"},
    {"error": 0.25, "prediction": 1},
]
RESULTS: list[Any] = [
    None, 7, "error", [], [{"error": "a"}, {"error": "b"}], {},
    {"error": None, "output": [1]},
    {"error": "", "code": ""},
    {"__type": "Pointer", "id": 1},
    {"base_resp": {"status_code": 0, "status_msg": "success"}, "vectors": [[1]]},
    {"code": 0, "message": "Success"},
    {"code": "200", "msg": "ok"},
    {"usage": {}, "type": "ping"},
    {"message": {"role": "assistant", "content": "hi"}},
]  # fmt: skip


def test_what_is_an_error_whoever_sends_it_is_told_from_what_may_be_a_result() -> None:
    assert [value for value in ERRORS if error_in(value) is None] == []
    assert [value for value in (*MAYBE_ERRORS, *RESULTS) if error_in(value) is not None] == []


def test_what_says_that_something_is_wrong_is_an_error_where_a_result_looks_different() -> None:
    assert [value for value in (*ERRORS, *MAYBE_ERRORS) if error_without_result(value) is None] == []
    assert [value for value in RESULTS if error_without_result(value) is not None] == []


def test_a_whole_body_is_an_error_if_it_is_one_in_json_and_small() -> None:
    assert [value for value in ERRORS if error_in_body(json.dumps(value).encode()) is None] == []
    assert error_in_body(b'{"error": ') is None
    large = json.dumps({"error": {"message": "x" * MAX_ERROR_BYTES}}).encode()
    assert error_in_body(large) is None

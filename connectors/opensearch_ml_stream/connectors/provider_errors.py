"""Errors as providers write them, in a stream or as a body: each of their forms becomes one UpstreamError.

    OpenAI and its kin   {"error": {"message", "type", "param", "code"}}, {"error": "..."}, {"object": "error", ...}
    Anthropic            {"type": "error", "error": {"type", "message"}}
    Google               {"error": {"code", "message", "status", "details"}}, or that in an array
    AWS                  {"__type", "message"} or {"Output": {"__type"}}; x-amzn-errortype, :exception-type
    Azure                {"error": {"code", "message", "innererror"}}, {"statusCode", "message"}
    FastAPI              {"detail": "..."}, {"detail": [{"loc", "msg", "type"}]}
    problem+json         {"type", "title", "detail", "status"} (RFC 9457)
    OpenRouter           {"error": {"message", "code", "metadata": {"raw"}}}
    OpenSearch           {"error": {"root_cause", "type", "reason"}, "status"}
    others               {"message"}, {"code", "message"}, {"error", "error_type"}, {"errors": [{"code", "message"}]},
                         {"error_code", "error_msg"}, {"base_resp": {"status_code", "status_msg"}}

Texts are as the provider wrote them: whoever shows an error redacts it (`UpstreamError.redacted`).
"""

import re
from dataclasses import dataclass
from math import ceil
from typing import Any

import orjson

from opensearch_ml_stream.connectors.errors import CONTEXT_LENGTH_EXCEEDED, ProviderWords, UpstreamError
from opensearch_ml_stream.connectors.syntax import provider_json
from opensearch_ml_stream.connectors.syntax.regex import compile_regex

MAX_ERROR_BYTES = 64 * 1024  # of a body that may be an error
MAX_WORD_CHARS = 200  # of a code, type or param
MAX_SEARCHED_CHARS = 4096  # of a message

_MAX_DEPTH = 4  # of objects in one another that are opened
_MAX_ERRORS = 8  # of a list that are shown

_CONTAINERS = ("error", "errors", "Output", "base_resp", "fault", "detail", "message")
_MESSAGES = (
    "message", "Message", "msg", "error_message", "errorMessage", "error_msg", "error_description", "status_msg",
    "originalMessage", "detail", "details", "title",
)  # fmt: skip
_CODES = ("code", "Code", "error_code", "errorCode", "__type", "status_code", "statusCode", "status")
_TYPES = ("type", "error_type", "errorType")
_NO_TYPES = frozenset({"error", "about:blank"})
_GOOD_CODES = frozenset({"", "0", "200", "ok", "success"})
# Members of a result, which no error has.
_RESULTS = (
    "choices", "output", "outputs", "data", "result", "results", "predictions", "candidates", "embedding",
    "embeddings", "content", "response", "completion", "generated_text", "generation", "text",
)  # fmt: skip
# What may stand beside an error's text, in an object that is nothing but an error.
_BESIDE_ERRORS = frozenset({
    "code", "detail", "details", "error", "error_code", "error_description", "error_type", "errors", "estimated_time",
    "id", "message", "messages", "metadata", "object", "param", "path", "request_id", "requestId", "result", "status",
    "status_code", "statusCode", "success", "timestamp", "trace", "trace_id", "type", "usage", "warnings",
})  # fmt: skip
_ABSENT: tuple[Any, ...] = (None, "", [], {})
_MAY_BE_ERROR = (b'"error', b'__type"', b'"base_resp"')
_AWS_NAME = re.compile(r"\w+(?:Exception|Error|Fault|Failure)")
_DIGITS = re.compile(r"[0-9]{1,9}")
_WORD = re.compile(r"[\w.-]+")
_DELAY = re.compile(r"(\d{1,8}(?:\.\d{1,9})?)s")

# The HTTP status that each code or type of an error stands for, in lower case.
_STATUS_WORDS = {
    400: (
        "badrequest badrequesterror content_policy_violation datainspectionfailed exceed_context_size_error "
        "failed_precondition invalid_argument invalid_prompt invalid_request invalid_request_error invalidparameter "
        "servicequotaexceededexception validationexception " + CONTEXT_LENGTH_EXCEEDED
    ),
    401: "authentication_error authenticationerror invalid_api_key invalidapikey unauthenticated",
    402: "billing_error",
    403: "accessdenied accessdeniedexception arrearage model.accessdenied permission_denied permission_error",
    404: (
        "model_not_found modelnotfound not_found not_found_error notfounderror resourcenotfoundexception "
        "unknownoperationexception"
    ),
    408: "modeltimeoutexception",
    413: "request_too_large",
    422: "validation",
    424: "generation modelstreamerror modelstreamerrorexception",
    429: (
        "insufficient_quota limitrequests modelnotreadyexception overloaded rate_limit_error rate_limit_exceeded "
        "ratelimiterror requests resource_exhausted throttling throttlingexception tokens too_many_requests "
        "toomanyrequestsexception"
    ),
    500: (
        "api_error incomplete_generation internal internal_server_error internalerror internalserverexception "
        "internalservererror internalstreamfailure server_error systemerror"
    ),
    503: "modelunavailable server_is_overloaded service_unavailable serviceunavailableexception slow_down unavailable",
    504: "deadline_exceeded gateway_timeout timeout_error",
    529: "overloaded_error",
}
_STATUSES = {word: status for status, words in _STATUS_WORDS.items() for word in words.split()}

# How providers say that a conversation is too long. Each stands for those that say so in the same words.
_TOO_LONG = compile_regex(
    "|".join((
        r"context[_ ](?:length|window|size)[_ ]exceeded|exceed_context_size|model_max_prompt_tokens",  # codes
        r"prompt (?:is )?too long|prompt exceeds max",  # Anthropic, Ollama, Zhipu
        r"(?:exceed|longer than|greater than|larger than|too long|too large|overflow)[ -~]{0,80}context"
        r"(?: length| window| size| limit)",  # OpenAI's Responses, llama.cpp, LM Studio, SGLang, Mistral
        r"context (?:length|window|size|limit)[ -~]{0,40}exceed",  # MiniMax
        r"maximum (?:context|prompt|model) length",  # OpenAI, vLLM, DeepSeek, OpenRouter, xAI
        r"input (?:is )?too long",  # Bedrock
        r"too many (?:input )?tokens(?:[^:]|: [^m]|$)",  # Cohere, Titan; not of the answer
        r"(?:input|prompt) tokens?\b[ -~]{0,60} exceed",  # Gemini, Nova, watsonx, GitHub Copilot
        r"exceeded model token limit",  # Moonshot
        r"reduce the length of (?:the|your) (?:messages|prompt|input)",  # Groq, OpenAI
        r"range of input length should be",  # Alibaba
        r"`inputs`[ -~]{0,60}(?:tokens|<=)",  # TGI
    )),
    ignore_case=True,
    has_groups=False,
)  # fmt: skip
_NOT_TOO_LONG = (401, 403, 429)  # "too many tokens" a minute are a matter of time


def read_error(value: object, code: str | None = None) -> UpstreamError:
    """Return the error that a provider's object, list or text is; `code` is the name that it gives beside it."""
    found = _Found(code=_word(code))
    found.open(value)
    return _error(found, found.message or found.code or found.type or _shown(value), found.status)


def read_error_body(body: bytes, status: int, code: str | None = None) -> UpstreamError:
    """Return the error of a response with this HTTP status: what its JSON says, else its text."""
    text = body.decode("utf-8", "replace").strip()
    value = _json_or_text(body)
    if isinstance(value, str) and _is_events(text):  # as of a stream, though the status says that there is none
        lines = body.splitlines()
        value = _json_or_text(b"\n".join([line[5:] for line in lines if line.startswith(b"data:")]))
    found = _Found(code=_word(_aws_name(code or "")))
    found.open(value)
    error = _error(found, found.message or text, status)
    if not text:
        error.reason = f"Remote service returned error status {status} with empty body"
    return error


def error_in(value: object) -> UpstreamError | None:
    """Return the error that a response of any server is; None for what may as well be a result."""
    if isinstance(value, list):
        value = value[0] if len(value) == 1 else None
    if not isinstance(value, dict) or not _is_error(value):
        return None
    return read_error(value)


def error_in_body(body: bytes) -> UpstreamError | None:
    """Return the error that a whole response under a good status is, as `error_in` does."""
    if len(body) > MAX_ERROR_BYTES or not any(name in body for name in _MAY_BE_ERROR):
        return None
    try:
        return error_in(provider_json.loads(body))
    except ValueError:
        return None


def error_without_result(value: object) -> UpstreamError | None:
    """Return the error that an object is which is nothing that its dialect has; None if it says of nothing wrong."""
    if isinstance(value, list):
        value = value[0] if len(value) == 1 else None
    if not isinstance(value, dict):
        return None
    if value.get("error") or _is_error(value):
        return read_error(value)
    code = next((value[name] for name in _CODES if value.get(name) is not None), None)
    if isinstance(code, int | str) and str(code).lower() in _GOOD_CODES:
        return None
    says = any(isinstance(value.get(name), str) and value[name] for name in _MESSAGES)
    is_list = any(isinstance(value.get(name), list) and value[name] for name in ("detail", "errors"))
    has_code = any(isinstance(value.get(name), int | str) and value[name] for name in ("code", "error_code"))
    return read_error(value) if says or is_list or has_code else None


def named_error_without_result(value: object) -> UpstreamError | None:
    """Return the error of `error_without_result` if it has a code, or a status of one, or is FastAPI's.

    For a whole response of a known dialect: a message alone may be an answer of another, and private.
    """
    error = error_without_result(value)
    is_detail = isinstance(value, dict) and value.keys() == {"detail"}
    is_named = error is not None and (error.provider.code or error.provider_status)
    return error if is_detail or is_named else None


def _error(found: "_Found", message: str, status: int | None) -> UpstreamError:
    """Return the error of what was found. Its code and type tell the status of one that has none."""
    if status is None:
        status = next((of for word in (found.code, found.type) if (of := _status_of(word)) is not None), None)
    if status not in _NOT_TOO_LONG and _TOO_LONG.search(f"{found.code} {found.type} {message[:MAX_SEARCHED_CHARS]}"):
        found.code = CONTEXT_LENGTH_EXCEEDED
        status = status or 400
    return UpstreamError(
        f"Error from remote service: {message}",
        retry_after=found.retry_after,
        provider_status=status,
        provider=ProviderWords(found.code, found.type, found.param),
    )


def without_answer() -> UpstreamError:
    """Return the error for a stream that its provider ended properly, and in which there was nothing."""
    return UpstreamError("The provider ended the stream without an answer: it sent nothing before the end")


def _is_error(value: dict[str, Any]) -> bool:
    if value.get("object") == "error" or (value.get("type") == "error" and ("error" in value or "message" in value)):
        return True
    inner = value.get("Output", value)
    name = inner.get("__type") if isinstance(inner, dict) else None
    if isinstance(name, str) and _AWS_NAME.fullmatch(_aws_name(name)):
        return True
    base = value.get("base_resp")
    if isinstance(base, dict) and base.get("status_code"):
        return True
    if value.get("error_code") and isinstance(value.get("error_msg"), str):
        return True
    present = {name: member for name, member in value.items() if member not in _ABSENT}
    others = [member for name, member in present.items() if name not in _BESIDE_ERRORS]
    if any(name in present for name in _RESULTS) or any(_is_more_than_a_word(member) for member in others):
        return False
    error, errors = present.get("error"), present.get("errors")
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        return True
    return not others and (isinstance(error, str | list | dict) or isinstance(errors, list))


def _is_more_than_a_word(member: object) -> bool:
    return isinstance(member, int | float | list | dict) and not isinstance(member, bool)


@dataclass(slots=True)
class _Found:
    """What has been found of an error so far: what an inner object says comes before what is around it."""

    message: str = ""
    code: str | None = None
    type: str | None = None
    param: str | None = None
    status: int | None = None
    retry_after: str | None = None

    def open(self, value: object, depth: int = 0) -> None:
        """Read an object, a list of them, or a text."""
        if isinstance(value, str):
            self.message = self.message or value.strip()
        elif depth == _MAX_DEPTH:
            return
        elif isinstance(value, list):
            self._open_list(value[:_MAX_ERRORS], depth)
        elif isinstance(value, dict):
            for name in _CONTAINERS:
                if isinstance(inner := value.get(name), dict | list) and inner:
                    self.open(inner, depth + 1)
            self._read(value)

    def _open_list(self, values: list[Any], depth: int) -> None:
        messages: list[str] = []
        for value in values:
            one = _Found()
            one.open(value, depth + 1)
            if isinstance(value, dict) and isinstance(place := value.get("loc"), list):  # FastAPI's
                one.param = _word(".".join(str(name) for name in place[1:8] if isinstance(name, int | str)))
                one.type = None
                one.message = f"{one.param}: {one.message}" if one.param else one.message
            messages.append(one.message)
            self.code, self.type = self.code or one.code, self.type or one.type
            self.param, self.status = self.param or one.param, self.status or one.status
            self.retry_after = self.retry_after or one.retry_after
        self.message = self.message or "; ".join(filter(None, messages))

    def _read(self, value: dict[str, Any]) -> None:
        texts = (value.get(name) for name in (*_MESSAGES, "reason"))  # the last is OpenSearch's
        message: str = next((text for text in texts if isinstance(text, str) and text), "")
        error = value.get("error")
        if isinstance(error, str) and error:
            if message and _WORD.fullmatch(error):  # the name of the error
                self.code = self.code or _word(error)
            else:
                message = f"{error}: {message}" if message else error
        if isinstance(metadata := value.get("metadata"), dict) and isinstance(raw := metadata.get("raw"), str):
            message = self._join_raw(message, raw)
        self.message = self.message or message.strip()
        self._read_codes(value)
        for name in _TYPES:
            if (kind := _word(value.get(name))) is not None and kind not in _NO_TYPES:
                self.type = self.type or kind
        self.param = self.param or _word(value.get("param"))
        if self.retry_after is None and isinstance(details := value.get("details"), list):
            self.retry_after = _retry_delay(details[:_MAX_ERRORS])

    def _join_raw(self, message: str, raw: str) -> str:
        """Return a router's message with that of the provider behind it (OpenRouter's), whose words come first."""
        of_provider = _Found()
        of_provider.open(_json_or_text(raw.encode("utf-8", "replace")))
        self.code, self.type = of_provider.code, of_provider.type
        self.param = of_provider.param
        return ": ".join(filter(None, (message, of_provider.message or raw)))

    def _read_codes(self, value: dict[str, Any]) -> None:
        for name in _CODES:
            code = value.get(name)
            number = int(code) if isinstance(code, str) and _DIGITS.fullmatch(code) else code
            if isinstance(number, int) and 400 <= number < 600:
                self.status = self.status or number
            elif isinstance(code, str) and name == "__type":
                self.code = self.code or _word(_aws_name(code))
            elif isinstance(code, str) and (name != "status" or code.isupper()):  # Google's
                self.code = self.code or _word(code)
            elif isinstance(code, int) and code and not isinstance(code, bool) and name != "status":
                self.code = self.code or str(code)[:MAX_WORD_CHARS]


def _json_or_text(body: bytes) -> Any:
    try:
        return provider_json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace").strip()


def _is_events(text: str) -> bool:
    return text.startswith(("data:", "event:", "id:", ":"))


def _shown(value: object) -> str:
    """Return the text of an error in which nothing is known."""
    inner = value.get("error", value) if isinstance(value, dict) else value
    if not inner:
        return "it gives no reason"
    try:
        return orjson.dumps(inner).decode()
    except orjson.JSONEncodeError:
        return "(nested too deeply to be shown)"


def _word(value: object) -> str | None:
    """Return a code, type or param, None if it is not a string or empty."""
    return value.strip()[:MAX_WORD_CHARS] or None if isinstance(value, str) else None


def _aws_name(value: str) -> str:
    """Return the name in `com.amazon.coral.service#ValidationException:http://...`."""
    return value.rpartition("#")[2].partition(":")[0]


def _status_of(word: str | None) -> int | None:
    """Return the status of a code or type; Alibaba's have a finer word behind a dot."""
    if word is None:
        return None
    word = word.lower()
    return _STATUSES.get(word) or _STATUSES.get(word.partition(".")[0])


def _retry_delay(details: list[Any]) -> str | None:
    """Return the seconds of Google's `RetryInfo`, rounded up."""
    delays = (detail.get("retryDelay") for detail in details if isinstance(detail, dict))
    found = next((_DELAY.fullmatch(delay) for delay in delays if isinstance(delay, str)), None)
    return None if found is None else str(ceil(float(found[1])))

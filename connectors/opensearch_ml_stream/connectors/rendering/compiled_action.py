"""Compile a connector's action once, then render the request to the provider from a caller's parameters."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from encodings.aliases import aliases
from functools import cached_property
from itertools import chain
from typing import Any

from opensearch_ml_stream.connectors.documents import (
    BATCH_PREDICT,
    JOB_ACTION_TYPES,
    MAX_URL_LENGTH,
    Action,
    check_url_length,
)
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.known_providers import SHIPPED, KnownProviders
from opensearch_ml_stream.connectors.rendering.body_edits import INPUT_PROCESSORS, edit_body, may_edit_body
from opensearch_ml_stream.connectors.rendering.caller_parameters import CallerParameters, is_connectors_own
from opensearch_ml_stream.connectors.rendering.filled_template import MAX_KEPT, FilledTemplates, parameter_names
from opensearch_ml_stream.connectors.rendering.template import (
    ConnectorParameters,
    Parameters,
    Placeholder,
    Template,
    UnfilledPlaceholders,
    body_parameters,
)
from opensearch_ml_stream.connectors.rendering.unfilled_values import (
    CREDENTIAL,
    check_url_is_given,
    is_to_be_given,
    left_in_header,
    not_given,
    unknown_placeholders,
)
from opensearch_ml_stream.connectors.rendering.url import CONTROL, check_characters, check_url, render_url
from opensearch_ml_stream.connectors.stream_spec import Enable, Streaming
from opensearch_ml_stream.connectors.syntax import json_members, jsontext
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText, to_json

_MARK = "\ue000"  # of private use; a template that has it is left alone


@dataclass(frozen=True, slots=True)
class StreamedBody:
    """A template with streaming turned on, and the names of the parameters that are whole members of the body."""

    template: Template
    members: tuple[str, ...]

    def fits(self, request: Mapping[str, str]) -> bool:
        """Whether the request gives JSON for the members: a text there may hold what a body may not."""
        return all(isinstance(request[name], JsonText) for name in self.members)


class StreamedBodies(dict[frozenset[str], StreamedBody | None]):
    """Filled templates with streaming turned on, by the names of the parameters that a request gives."""

    __slots__ = ("_enable", "_templates")

    def __init__(self, templates: FilledTemplates, enable: Enable) -> None:
        super().__init__()
        self._templates = templates
        self._enable = enable

    def __missing__(self, given: frozenset[str]) -> StreamedBody | None:
        if len(self) >= MAX_KEPT:
            return None
        self[given] = body = streamed_body(self._templates[given], self._enable, given)
        return body


def change_body(enable: Enable, body: str) -> str:
    """Return a rendered body with streaming turned on; an error of `json_members` if it is not one JSON object."""
    for name, values in enable.inner_body.items():
        body = json_members.set_inner_members(body, name, values)
    return json_members.set_members(body, enable.body, enable.drop)


def find_members(template: Template) -> Mapping[str, str] | None:
    """Return the members of the body that a template makes, as JSON with marks for its placeholders.

    None if it is no object, whatever the placeholders are.
    """
    marks = [one.member + _mark(index, one) for index, one in enumerate(template.placeholders)]
    try:
        return json_members.split_unique_members(_marked(template, marks))
    except (ValueError, InvalidRequest, RecursionError):
        return None


def streamed_body(template: Template, enable: Enable, given: frozenset[str]) -> StreamedBody | None:
    """Turn streaming on in a template, for requests that give these parameters; None if each body must be changed.

    To change a rendered body it has to be parsed, prompt and all. Where the values of a request stand only within
    strings, or are whole members of the body, the change around them is the same for each request.

    Each placeholder is marked and must be found again: not in a name, and as a whole member unless it is in a string.
    """
    placeholders = template.placeholders
    if _MARK in "".join(template.literals) or not all(_can_be_marked(one, given) for one in placeholders):
        return None
    marks = [_mark(index, one) for index, one in enumerate(placeholders)]
    try:
        body = change_body(enable, _marked(template, marks))
        json.loads(body, object_pairs_hook=_refuse_marked_names)
        values = set(json_members.split_unique_members(body).values())
    except (ValueError, InvalidRequest, RecursionError):
        return None
    literals = _split(body, marks)
    members = {mark: one.name for one, mark in zip(placeholders, marks, strict=True) if not one.quoted}
    if literals is None or not members.keys() <= values:
        return None
    return StreamedBody(Template(literals, placeholders), tuple(members.values()))


def _can_be_marked(placeholder: Placeholder, given: frozenset[str]) -> bool:
    return not placeholder.or_null if placeholder.quoted else placeholder.name in given


def _mark(index: int, placeholder: Placeholder) -> str:
    mark = f"{_MARK}{index}{_MARK}"
    return mark if placeholder.quoted else f'"{mark}"'


def _marked(template: Template, marks: list[str]) -> str:
    return "".join(chain(*zip(template.literals, [*marks, ""], strict=True)))


def _split(body: str, marks: list[str]) -> tuple[str, ...] | None:
    """Return what stands between the marks, None unless each is there, once and in its turn."""
    literals: list[str] = []
    for mark in marks:
        literal, found, body = body.partition(mark)
        if not found:
            return None
        literals.append(literal)
    literals.append(body)
    return None if _MARK in "".join(literals) else tuple(literals)


def _refuse_marked_names(pairs: list[tuple[str, Any]]) -> None:
    """Raise ValueError for a name that holds a value of the request: another may have the same then."""
    if any(_MARK in name for name, _ in pairs):
        raise ValueError


_NO_CHARSETS = {"base64_codec", "bz2_codec", "hex_codec", "quopri_codec", "rot_13", "uu_codec", "zlib_codec", "mbcs"}
_CODECS = frozenset(aliases.values()) - _NO_CHARSETS


def find_codec(charset: str) -> str:
    """Return Python's codec for a charset by a name that Java and Python both know. InvalidRequest for any other.

    Python's own look-up is not asked: it also knows codecs that are no charsets (`idna`, `undefined`, `base64`),
    imports modules by the name that it is given, and keeps every name that it does not know.
    """
    name = charset[:40].lower().replace("-", "_").replace(" ", "_")
    codec = aliases.get(name, name)
    if codec not in _CODECS:
        raise InvalidRequest("The parameter [charset] is not the name of a charset, such as UTF-8 or ISO-8859-1")
    return codec


MAX_HEADER_BYTES = 8192  # of name and value together, the limit of ML Commons 3.7
MAX_JSON_LINES = 50_000  # of a request body
MAX_KEPT_WAYS = 16  # of streaming one action: callers may send any `_llm_interface`

_CHARSET = "charset"
_METHODS = ("POST", "GET", "PUT", "DELETE")


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """The request to send: header names as the connector writes them, the body encoded and empty for none."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    charset: str = "utf_8"  # of the body, by Python's name


@dataclass(frozen=True, slots=True)
class _Head:
    """URL, headers and charset of a request."""

    url: str
    headers: Mapping[str, str]
    charset: str


@dataclass(frozen=True, slots=True)
class _Way:
    """A way of streaming, and what it changes in an action's requests; `bodies` as far as that is known ahead.

    `stream` is None for that of not streaming.
    """

    stream: Streaming | None
    enable: Enable
    changes_head: bool
    changes_body: bool
    bodies: StreamedBodies | None


@dataclass(frozen=True)
class CompiledAction:
    """An action with its templates compiled and its credentials filled in, once per connector version."""

    action: Action
    parameters: ConnectorParameters
    url: Template
    headers: tuple[tuple[str, Template], ...]
    body: Template | None
    may_edit_body: bool  # see body_edits.may_edit_body
    has_credential: bool
    known: KnownProviders
    stream: Streaming | None  # how its provider streams, None where that is not known
    not_given: str | None  # what a header leaves to be given
    unknown_placeholder: str | None  # where a placeholder stands that nothing fills, and which

    @classmethod
    def compile(
        cls,
        action: Action,
        parameters: ConnectorParameters,
        credential: Mapping[str, str],
        known: KnownProviders = SHIPPED,
        stream: Streaming | None = None,
    ) -> "CompiledAction":
        """Compile an action. `credential` is in clear text and fills headers only, never a URL or a body.

        `stream` is how its provider streams, for requests of a whole response to say that they want no stream.
        InvalidRequest if a header names a credential that the connector lacks.
        """
        headers = {"Content-Type": "application/json"}
        if any(name.lower() == "content-type" for name in action.headers):
            headers.clear()
        headers.update(action.headers)
        return cls(
            action=action,
            parameters=parameters,
            url=Template.compile(action.url, json=False),
            headers=tuple((name, _header_template(name, value, credential)) for name, value in headers.items()),
            body=None if action.request_body is None else Template.compile(action.request_body),
            may_edit_body=may_edit_body(action, parameters.values),
            has_credential=bool(credential),
            known=known,
            stream=stream,
            not_given=_not_given_in(headers, credential),
            unknown_placeholder=_unknown_placeholder(action, parameters.values),
        )

    def scope(self, request: Mapping[str, str]) -> Parameters:
        """Return the request's parameters laid over the connector's."""
        return Parameters(self.parameters, request)

    @cached_property
    def _bodies(self) -> FilledTemplates | None:
        return None if self.body is None else FilledTemplates(self.body, self.parameters)

    @cached_property
    def _ways(self) -> dict[int, _Way]:
        """The ways in which its requests were streamed, by the `id` of what each holds."""
        return {}

    @cached_property
    def _caller_parameters(self) -> CallerParameters:
        return CallerParameters.compile(
            self.action, self.parameters, has_credential=self.has_credential, known=self.known
        )

    @cached_property
    def _head_names(self) -> frozenset[str]:
        """The names of all parameters that can change URL, headers or charset."""
        templates = [self.url, *(template for name, template in self.headers if not is_connectors_own(name))]
        names = [placeholder.name for template in templates for placeholder in template.placeholders]
        return parameter_names([*names, _CHARSET], self.parameters)

    @cached_property
    def _own_head(self) -> _Head | None:
        """The head of every request without such parameters; None if these must give something."""
        scope = self.scope({})
        try:
            return _Head(self._render_url(scope), self._render_headers(scope), _find_charset(scope))
        except InvalidRequest:
            return None

    def render(self, request: Mapping[str, str], stream: Streaming | None = None) -> ProviderRequest:
        """Return the request to the provider, with streaming turned on as `stream` says, else off.

        InvalidRequest for a placeholder without a value, for a parameter that a request may not set, and for a URL,
        header or body that cannot be sent.
        """
        self._check_sendable()
        way = self._whole if stream is None else self._ways.get(id(stream)) or self._new_way(stream)
        head = self._head(self.scope(request))
        body = self._render_body(body_parameters(self.parameters, request), way)
        if way is not None:
            head = _enable_head(way, head)
        if self.action.method == "POST" and not body and self.action.action_type != "CANCEL_BATCH_PREDICT":
            raise InvalidRequest("Content length is 0. Aborting request to remote model")
        return ProviderRequest(self.action.method, head.url, head.headers, _encode(body, head.charset), head.charset)

    def render_body(self, body: Mapping[str, Any], stream: Streaming | None = None) -> ProviderRequest:
        """Return the request with a body that something else than the action's template has made.

        URL, headers and charset are the connector's own, and its edits are made. Then streaming is turned on as
        `stream` says; without it the request asks for none, whatever the template has. InvalidRequest as from `render`.
        """
        self._check_sendable()
        head = self._own_head or self._head(self.scope({}))
        if self.may_edit_body:
            edited = edit_body(self.action, self.parameters.values, {}, to_json(body).decode())
            body = jsontext.parse(edited, "The request body, as the connector's input_processors leave it,")
            if not isinstance(body, dict):
                raise InvalidRequest("The connector's input_processors leave no JSON object of the request body")
        if stream is not None:
            head = _enable_head(self._ways.get(id(stream)) or self._new_way(stream), head)
            body = stream.enable.change_body(body)
        elif self._whole is not None:
            head = _enable_head(self._whole, head)
        if stream is None and body.get("stream"):
            body = {name: value for name, value in body.items() if name != "stream_options"} | {"stream": False}
        data = to_json(body)
        if head.charset != "utf_8":
            data = _encode(data.decode(), head.charset)
        return ProviderRequest(self.action.method, head.url, head.headers, data, head.charset)

    def _check_sendable(self) -> None:
        if self.action.method not in _METHODS:
            raise InvalidRequest(f"unsupported http method [{self.action.method}]")
        if self.unknown_placeholder is not None:
            raise InvalidRequest(self.unknown_placeholder)

    def _head(self, scope: Parameters) -> _Head:
        head = self._own_head if self._head_names.isdisjoint(scope.request) else None
        return head or _Head(self._render_url(scope), self._render_headers(scope), _find_charset(scope))

    def _new_way(self, stream: Streaming) -> _Way:
        enable, bodies = stream.enable, self._bodies
        changes_body = bool(enable.body or enable.inner_body or enable.drop)
        streamed = StreamedBodies(bodies, enable) if changes_body and bodies is not None else None
        way = _Way(stream, enable, bool(enable.url or enable.query or enable.headers), changes_body, streamed)
        if len(self._ways) < MAX_KEPT_WAYS:
            self._ways[id(stream)] = way
        return way

    @cached_property
    def _whole(self) -> _Way | None:
        """The way of not streaming; None where neither the connector nor the provider streams unless it is asked to."""
        if self.stream is None or self.action.action_type in (BATCH_PREDICT, *JOB_ACTION_TYPES):
            return None
        on, off, bodies = self.stream.enable, self.stream.enable.turned_off(), self._bodies
        url = self.action.url if self._own_head is None else self._own_head.url
        names = {name.lower() for name, _ in self.headers}
        changes_head = (
            any(new in url for _, new in on.url)
            or any(f"{name}=" in url for name in on.query)
            or any(name.lower() in names for name in on.headers)
        )
        members = {} if bodies is None else find_members(bodies[frozenset()]) or {}
        changes_body = any(members.get(name, "false") != "false" for name in (*off.body, *off.drop)) or (
            on.by_default and off.body.keys().isdisjoint(members)
        )
        if not changes_head and not changes_body:
            return None
        streamed = StreamedBodies(bodies, off) if changes_body and bodies is not None else None
        return _Way(None, off, changes_head, changes_body, streamed)

    def _render_body(self, scope: Parameters, way: _Way | None) -> str:
        """Return the body, empty for none, with edits made and streaming turned on."""
        request, bodies = scope.request, self._bodies
        is_about_job = self.action.action_type in JOB_ACTION_TYPES  # no prediction, so its body is not edited
        edits_body = (self.may_edit_body or INPUT_PROCESSORS in request) and not is_about_job
        changes_body = way is not None and way.changes_body
        if bodies is None:
            body = scope.get("http_body") or ""
        else:
            given = bodies.names.intersection(request)
            if way is not None and way.bodies is not None and not edits_body and not scope.fragments:
                streamed = way.bodies[given]
                if streamed is not None and (not streamed.members or streamed.fits(request)):
                    return streamed.template.render_json(scope)
            body = bodies[given].render_json(scope)
            if edits_body or not changes_body:
                _check_json(body)
            if scope.fragments:
                jsontext.parse(body, "The connector's request_body, filled with the parameters,")
        if edits_body:
            body = edit_body(self.action, self.parameters.values, request, body)
        return _enable_body(way, body) if way is not None and changes_body else body

    def _render_url(self, scope: Parameters) -> str:
        url = render_url(self.url, scope)
        if scope.request:
            self._caller_parameters.check(scope.request, url)
        check_url_is_given(url)
        check_url(url)
        return url

    def _render_headers(self, scope: Parameters) -> dict[str, str]:
        if self.not_given is not None:
            raise not_given(self.not_given)
        return {name: self._render_header(name, template, scope) for name, template in self.headers}

    def _render_header(self, name: str, template: Template, scope: Parameters) -> str:
        if template.placeholders and is_connectors_own(name):
            scope = Parameters(scope.connector, {})
        try:
            value = template.render_text(scope)
        except UnfilledPlaceholders:
            raise InvalidRequest(
                f"Header '{name}' contains unresolved placeholder. Required parameter is missing."
            ) from None
        check_characters(value)
        if len(name) + len(value) > MAX_HEADER_BYTES:
            raise InvalidRequest("Header size (key + value) exceeds 8KB limit")
        if CONTROL.search(value):
            raise InvalidRequest("Header value contains invalid control character")
        return value


def _find_charset(scope: Parameters) -> str:
    """Return Python's name of the parameter `charset`, UTF-8 without it. InvalidRequest if there is none such."""
    return find_codec(name) if (name := scope.get(_CHARSET)) else "utf_8"


def _enable_head(way: _Way, head: _Head) -> _Head:
    if way.changes_head:
        url, headers = way.enable.change_head(head.url, head.headers)
        head = _Head(url, headers, head.charset)
    if len(head.url) > MAX_URL_LENGTH:
        check_url_length(len(head.url))
    return head


def _encode(body: str, charset: str) -> bytes:
    try:
        return body.encode(charset)
    except UnicodeEncodeError:
        raise InvalidRequest("The parameters hold text that the connector's charset cannot encode") from None


def _check_json(text: str) -> None:
    """Raise InvalidRequest if the text is neither JSON nor JSON lines."""
    if not jsontext.is_json(text) and not _is_json_lines(text):
        raise InvalidRequest("Invalid payload: the connector's request_body, filled with the parameters, is not JSON")


def _is_json_lines(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    return len(lines) <= MAX_JSON_LINES and all(jsontext.is_json(line) for line in lines)


def _header_template(name: str, value: str, credential: Mapping[str, str]) -> Template:
    def fill(match: re.Match[str]) -> str:
        if match[1] not in credential:
            raise InvalidRequest(f"Header '{name}' needs the credential [{match[1]}], which the connector lacks")
        return credential[match[1]]

    return Template.compile(value, json=False).map_literals(lambda literal: CREDENTIAL.sub(fill, literal))


def _unknown_placeholder(action: Action, parameters: Mapping[str, str]) -> str | None:
    for place, what in unknown_placeholders(action.url, action.headers, action.request_body, parameters):
        return f"The connector's {place} has {what}"
    return None


def _not_given_in(headers: Mapping[str, str], credential: Mapping[str, str]) -> str | None:
    for name, value in headers.items():
        if left := left_in_header(value):
            return f"header '{name}' ({left})"
        for key in CREDENTIAL.findall(value):
            if is_to_be_given(credential[key]):
                return f"credential [{key}]"
    return None


def _enable_body(way: _Way, body: str) -> str:
    try:
        return change_body(way.enable, body)
    except (json.JSONDecodeError, InvalidRequest, RecursionError):
        if body or way.stream is not None:
            _check_json(body)
        if way.stream is None:
            return body
        raise InvalidRequest("The connector's request_body is not a JSON object, so it cannot be streamed") from None

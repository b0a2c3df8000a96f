"""Templates filled ahead with the connector's parameters: the same renderings as from the template itself."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction
from opensearch_ml_stream.connectors.rendering.filled_template import MAX_FILLED_CHARS, MAX_KEPT, FilledTemplates
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters, Parameters, Template
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText

_NAMES = st.sampled_from(["a", "b", "c", "d", "a.toString()"])
_PIECES = st.one_of(
    _NAMES.map('"x":"${{parameters.{}}}"'.format),
    _NAMES.map('"x":${{parameters.{}}}'.format),
    _NAMES.map('"x":"${{parameters.{}:-null}}"'.format),
    _NAMES.map(', "x": ${{parameters.{}:-null}}'.format),
    _NAMES.map("${{parameters.{}:-1}}".format),
    _NAMES.map("$${{parameters.{}}}".format),
    st.sampled_from(['"', "{", ":", ",", "1"]),
)
_SOURCES = st.lists(_PIECES, max_size=5).map("".join)
_VALUES = st.one_of(
    st.sampled_from(["", "1", '"', "[1]", "${parameters.a}", "${parameters.b:-2}"]), _SOURCES, st.just(JsonText("7"))
)


def _outcome(render: Callable[..., object], *arguments: object) -> object:
    try:
        return render(*arguments)
    except InvalidRequest as error:
        return error.reason


@given(
    _SOURCES,
    st.dictionaries(_NAMES, _SOURCES, max_size=4),
    st.lists(st.dictionaries(_NAMES, _VALUES, max_size=3), min_size=1, max_size=4),
)
def test_a_filled_template_renders_as_the_template(
    source: str, own: dict[str, str], requests: list[dict[str, str]]
) -> None:
    template, parameters = Template.compile(source), ConnectorParameters.compile(own)
    filled = FilledTemplates(template, parameters)
    for request in [*requests, *requests]:
        expected = _outcome(template.render_json, Parameters(parameters, request))
        assert (
            _outcome(filled[filled.names.intersection(request)].render_json, Parameters(parameters, request))
            == expected
        )


@given(
    _SOURCES, _SOURCES, _SOURCES,
    st.dictionaries(st.one_of(_NAMES, st.just("charset")), st.one_of(st.just("latin-1"), _SOURCES), max_size=4),
    st.lists(
        st.dictionaries(st.one_of(_NAMES, st.just("charset")), st.one_of(st.just("latin-1"), _VALUES), max_size=3),
        min_size=1, max_size=3,
    ),
)  # fmt: skip
def test_an_action_renders_a_request_as_one_that_was_never_used_before(
    url: str, header: str, body: str, own: dict[str, str], requests: list[dict[str, str]]
) -> None:
    headers = {"X-A": header, "Authorization": header}
    action = Action("PREDICT", "POST", f"https://h/{url}", headers=headers, request_body=body)
    used = CompiledAction.compile(action, ConnectorParameters.compile(own), {})
    _outcome(used.render, {})
    for request in requests:
        fresh = CompiledAction.compile(action, ConnectorParameters.compile(own), {})
        assert _outcome(used.render, request) == _outcome(fresh.render, request)


def test_requests_that_change_no_header_have_the_same_headers_object() -> None:
    action = Action("PREDICT", "POST", "https://h/${parameters.model}", headers={"X-A": "${parameters.a}"})
    own = ConnectorParameters.compile({"model": "m", "a": "${parameters.b:-x}"})
    compiled = CompiledAction.compile(action, own, {})
    first, second = compiled.render({"http_body": "1"}), compiled.render({"http_body": "2"})
    assert first.headers is second.headers
    assert compiled.render({"http_body": "1", "b": "y"}).headers == {**first.headers, "X-A": "y"}
    assert compiled.render({"http_body": "1", "model": "é"}).url == "https://h/%C3%A9"


@pytest.mark.parametrize("size", [MAX_FILLED_CHARS, MAX_FILLED_CHARS + 1])
def test_neither_large_nor_many_filled_templates_are_kept(size: int) -> None:
    names = [f"p{index}" for index in range(MAX_KEPT + 5)]
    source = ",".join([f"${{parameters.{name}:-null}}" for name in ["own", *names]])
    template, parameters = (
        Template.compile(source),
        ConnectorParameters.compile({"own": JsonText('"%s"' % ("x" * size))}),
    )
    filled = FilledTemplates(template, parameters)
    for name in names:
        scope = Parameters(parameters, {name: "7"})
        assert filled[filled.names.intersection([name])].render_json(scope) == template.render_json(scope)

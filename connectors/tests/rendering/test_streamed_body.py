"""Body templates with streaming turned on ahead: the same bodies as by changing each rendered one."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.compiled_action import StreamedBodies, change_body
from opensearch_ml_stream.connectors.rendering.filled_template import MAX_KEPT, FilledTemplates
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters, Parameters, Template
from opensearch_ml_stream.connectors.stream_spec import Enable
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText

_NAMES = st.sampled_from(["a", "b", "c"])
_KEYS = st.sampled_from(["stream", "x", "o", "a b", "\\u0078"])
_VALUES = st.one_of(
    _NAMES.map('"${{parameters.{}}}"'.format),
    _NAMES.map(' "say ${{parameters.{0}}} or ${{parameters.{0}:-1}}" '.format),
    _NAMES.map("${{parameters.{}}}".format),
    _NAMES.map('{{"i": ${{parameters.{}}}}}'.format),
    _NAMES.map('[{{"t": "${{parameters.{}}}"}}]'.format),
    _NAMES.map('{{"${{parameters.{}}}": 1, "k": 2}}'.format),
    _NAMES.map('"${{parameters.{}:-null}}"'.format),
    _NAMES.map('1, "n": ${{parameters.{}:-null}}'.format),
    st.sampled_from(["1", '{"b":false}', "null", '"\ue000"', "x", '1}, {"y": 2']),
)
_MEMBERS = st.one_of(
    st.tuples(_KEYS.map('"{}"'.format), _VALUES).map(":".join), _NAMES.map('"${{parameters.{}}}":1'.format)
)
_BODIES = st.lists(_MEMBERS, max_size=4).map(", ".join).map("{{{}}}".format)
_ENABLES = st.sampled_from([
    Enable(body={"stream": True}),
    Enable(body={"stream": True}, drop=("x",)),
    Enable(body={"x": {"y": "é"}}, inner_body={"o": {"b": True}}),
    Enable(drop=("stream", "o")),
])  # fmt: skip
_TEXTS = st.sampled_from(
    ["", "7", '"', "\\", "\n", "x", "k", '"x":1', '{"d":1,"d":2}', "\ue0000\ue000", "${parameters.b}"]
)
_GIVEN = st.one_of(_TEXTS, st.sampled_from(["7", '[{"d": 1}]', '{"i":"}"}', "null"]).map(JsonText))


def _outcome(render: Callable[[], object]) -> object:
    try:
        return render()
    except InvalidRequest as error:
        return error.reason
    except ValueError:
        return ValueError


def _changed(template: Template, enable: Enable, scope: Parameters) -> str:
    return change_body(enable, template.render_json(scope))


@given(
    _BODIES,
    _ENABLES,
    st.dictionaries(_NAMES, st.one_of(_TEXTS, _VALUES), max_size=2),
    st.lists(st.dictionaries(_NAMES, _GIVEN, max_size=3), min_size=1, max_size=3),
)
@example('{"t":${parameters.a}}', Enable(body={"stream": True}), {}, [{"a": '{"d":1,"d":2}'}])
@example('{"t":"${parameters.a}"}', Enable(body={"stream": True}), {}, [{"a": "\ue0000\ue000"}])
def test_a_body_streamed_ahead_is_the_rendered_body_changed(
    source: str, enable: Enable, own: dict[str, str], requests: list[dict[str, str]]
) -> None:
    template, parameters = Template.compile(source), ConnectorParameters.compile(own)
    filled = FilledTemplates(template, parameters)
    bodies = StreamedBodies(filled, enable)
    for request in requests:
        body = bodies[filled.names.intersection(request)]
        if body is not None and body.fits(request):
            scope = Parameters(parameters, request)
            each = _outcome(partial(_changed, template, enable, scope))
            assert _outcome(partial(body.template.render_json, Parameters(parameters, request))) == each


@pytest.mark.parametrize(
    ("source", "own", "request_", "expected"),
    [
        ('{"p": "${parameters.p}"}', {}, {"p": '"'}, '{"p":"\\"","stream":true}'),
        ('{"m": ${parameters.m}, "stream": 1}', {}, {"m": JsonText("[ 1 ]")}, '{"m":[ 1 ],"stream":true}'),
        ('{"m":${parameters.m}}', {"m": '[{"c":"${parameters.p}"}]'}, {"p": "é"}, '{"m":[{"c":"é"}],"stream":true}'),
        ('{"a":1, "n": ${parameters.n:-null}, "x": ${parameters.x:-null}}', {}, {"n": JsonText("2")},
         '{"a":1,"n":2,"stream":true}'),
        ('{"p":"Say: ${parameters.q}"}', {"q": '"${parameters.p}"'}, {"p": "x"}, '{"p":"Say: \\"x\\"","stream":true}'),
    ],
)  # fmt: skip
def test_what_chat_templates_hold_is_streamed_ahead(
    source: str, own: dict[str, str], request_: dict[str, str], expected: str
) -> None:
    parameters = ConnectorParameters.compile(own)
    filled = FilledTemplates(Template.compile(source), parameters)
    body = StreamedBodies(filled, Enable(body={"stream": True}))[filled.names.intersection(request_)]
    assert body is not None and body.fits(request_)
    assert body.template.render_json(Parameters(parameters, request_)) == expected


@pytest.mark.parametrize(
    "source",
    [
        '["${parameters.p}"]',
        '{"${parameters.p}": 1}',
        '{"o": {"${parameters.p}": 1}}',
        '{"o": [${parameters.p}]}',
        '{"stream": "${parameters.p}"}',
        '{"p": "${parameters.p:-null}"}',
        '{"p": "\ue000", "q": "${parameters.p}"}',
    ],
)
def test_where_a_value_decides_what_the_body_is_each_body_is_changed(source: str) -> None:
    filled = FilledTemplates(Template.compile(source), ConnectorParameters.compile({}))
    assert StreamedBodies(filled, Enable(body={"stream": True}))[frozenset({"p"})] is None


def test_a_text_in_place_of_json_is_looked_at_each_time() -> None:
    filled = FilledTemplates(Template.compile('{"m":${parameters.m}}'), ConnectorParameters.compile({}))
    body = StreamedBodies(filled, Enable(body={"stream": True}))[frozenset({"m"})]
    assert body is not None
    assert not body.fits({"m": "[1]"})


def test_no_more_bodies_are_kept_than_templates() -> None:
    names = [f"p{index}" for index in range(MAX_KEPT + 5)]
    source = "{" + ",".join([f'"{name}":"${{parameters.{name}:-}}"' for name in names]) + "}"
    filled = FilledTemplates(Template.compile(source), ConnectorParameters.compile({}))
    bodies = StreamedBodies(filled, Enable(body={"stream": True}))
    for name in names:
        _ = bodies[frozenset({name})]
    assert len(bodies) == MAX_KEPT

"""Templates: what ML Commons' own substitution gives, less what its users report as defects."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.template import (
    ConnectorParameters,
    Parameters,
    Placeholder,
    Template,
    UnfilledPlaceholders,
    fill_with_stand_ins,
)
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText, is_json

Q = '{"p":"${parameters.p}"}'
RAW = '{"p":${parameters.p}}'
J = JsonText


def rendered(template: str, request: dict[str, str], own: dict[str, str] | None = None) -> str:
    return Template.compile(template).render_json(Parameters(ConnectorParameters.compile(own or {}), request))


@pytest.mark.parametrize(
    ("template", "own", "request_parameters", "expected"),
    [
        (Q, {}, {"p": "hi"}, '{"p":"hi"}'),
        (Q, {}, {"p": 'a "b"\nc/d é \\ \t'}, '{"p":"a \\"b\\"\\nc/d é \\\\ \\t"}'),
        (Q, {}, {"p": "日本😀<b>&'"}, '{"p":"日本😀<b>&\'"}'),
        (Q, {}, {"p": J("7")}, '{"p":"7"}'),
        (Q, {}, {"p": J("true")}, '{"p":"true"}'),
        (Q, {}, {"p": J("null")}, '{"p":"null"}'),
        (Q, {}, {"p": '"x"'}, '{"p":"\\"x\\""}'),
        (Q, {}, {"p": '{"a":1}'}, '{"p":"{\\"a\\":1}"}'),
        (Q, {}, {"p": '["a"]'}, '{"p":"[\\"a\\"]"}'),
        (Q, {}, {"p": J('["a"]')}, '{"p":"[\\"a\\"]"}'),
        (Q, {}, {"p": "[1]"}, '{"p":"[1]"}'),
        (Q, {}, {"p": "{a:1}"}, '{"p":"{a:1}"}'),
        (Q, {}, {"p": '{"a":1} tail'}, '{"p":"{\\"a\\":1} tail"}'),
        (RAW, {}, {"p": J('[{"role":"user","content":"a \\"b\\""}]')}, '{"p":[{"role":"user","content":"a \\"b\\""}]}'),
        (RAW, {}, {"p": '[{"role":"user","content":"é/"}]'}, '{"p":[{"role":"user","content":"é/"}]}'),
        (RAW, {}, {"p": J("7")}, '{"p":7}'),
        (RAW, {}, {"p": J("null")}, '{"p":null}'),
        (RAW, {}, {"p": J("0.0001")}, '{"p":0.0001}'),
        (RAW, {}, {"p": J("1e7")}, '{"p":1e7}'),
        ('{"p":"${parameters.p:-null}"}', {}, {}, '{"p":null}'),
        ('{"p":"${parameters.p:-null}"}', {}, {"p": J("null")}, '{"p":null}'),
        ('{"p":"${parameters.p:-null}"}', {}, {"p": "v"}, '{"p":"v"}'),
        ('{"p":"${parameters.p:-null}"}', {}, {"p": 'a"b'}, '{"p":"a\\"b"}'),
        ('{"p":"${parameters.p:-null}"}', {}, {"p": "null"}, '{"p":"null"}'),
        ('{"p":"${parameters.p:-null}"}', {"p": "${parameters.z}"}, {"z": "v"}, '{"p":"v"}'),
        ('{"p":"a ${parameters.p:-null}"}', {}, {}, '{"p":"a null"}'),
        ('{"p":"${parameters.p:-null} a"}', {}, {}, '{"p":"null a"}'),
        ('{"p":"${parameters.p:-none}"}', {}, {}, '{"p":"none"}'),
        ('{"p":"${parameters.p:-null}","q":"${parameters.q:-null}"}', {}, {"q": "v"}, '{"p":null,"q":"v"}'),
        ('{"p":"${parameters.p:-null}","q":${parameters.q}}', {}, {"q": J("1")}, '{"p":null,"q":1}'),
        ('{"p":"a\\n\\"${parameters.p}"}', {}, {"p": '"'}, '{"p":"a\\n\\"\\""}'),
        ('{"p":${parameters.p:-[]}}', {}, {}, '{"p":[]}'),
        ('{"p":"${parameters.p:-def}"}', {}, {}, '{"p":"def"}'),
        ('{"p":"${parameters.p:-}"}', {}, {}, '{"p":""}'),
        ('{"p":"${parameters.x:-a}b}"}', {}, {}, '{"p":"ab}"}'),
        (Q, {"p": "x ${parameters.z} y", "z": "zz"}, {}, '{"p":"x zz y"}'),
        (Q, {"p": "x ${parameters.z} y"}, {"z": "zz"}, '{"p":"x zz y"}'),
        (Q, {}, {"p": "see ${parameters.model}", "model": "m1"}, '{"p":"see ${parameters.model}"}'),
        (Q, {}, {"p": "see ${parameters.nope}"}, '{"p":"see ${parameters.nope}"}'),
        (Q, {}, {"p": "loop ${parameters.p}"}, '{"p":"loop ${parameters.p}"}'),
        (Q, {}, {"p": "$${parameters.q}"}, '{"p":"$${parameters.q}"}'),
        (Q, {"p": "ctx: ${parameters.c}"}, {"c": 'a "b"\n'}, '{"p":"ctx: a \\"b\\"\\n"}'),
        (Q, {"p": 'raw "quote"'}, {}, '{"p":"raw \\"quote\\""}'),
        (Q, {}, {"p": 'a"b', "no_escape_params": "p"}, '{"p":"a\\"b"}'),
        ('{"m":"${parameters.a.b}"}', {}, {"a.b": "dot"}, '{"m":"dot"}'),
        ('{"p":"${parameters.deploy-name}"}', {}, {"deploy-name": "d"}, '{"p":"d"}'),
        ("${parameters.p}", {}, {"p": J('["a","b"]')}, '["a","b"]'),
        ('{"a":1}\n{"b":"${parameters.p}"}', {}, {"p": "x"}, '{"a":1}\n{"b":"x"}'),
        ('{"c":"${credential.k}"}', {}, {"k": "v"}, '{"c":"${credential.k}"}'),
        ('{"p":"${ parameters.p }"}', {}, {"p": "v"}, '{"p":"${ parameters.p }"}'),
        (RAW, {"p": '[{"content":"${parameters.inputs}"}]'}, {"inputs": 'a "b"'}, '{"p":[{"content":"a \\"b\\""}]}'),
        (RAW, {"p": '[{"content":"${parameters.inputs}"}]'}, {"p": J("[1]")}, '{"p":[1]}'),
        (RAW, {"p": "512"}, {}, '{"p":512}'),
        ('{"a":"\\"${parameters.p}\\"","b":${parameters.n}}', {}, {"p": "x", "n": J("1")}, '{"a":"\\"x\\"","b":1}'),
    ],
)  # fmt: skip
def test_a_template_is_filled(
    template: str, own: dict[str, str], request_parameters: dict[str, str], expected: str
) -> None:
    assert rendered(template, request_parameters, own) == expected


@pytest.mark.parametrize(
    ("template", "own", "request_parameters", "names"),
    [
        (Q, {}, {}, ("p",)),
        (RAW, {}, {}, ("p",)),
        ('{"a":"${parameters.b}","c":${parameters.d},"e":"${parameters.b}"}', {}, {}, ("b", "d")),
        ('{"p":"$${parameters.q}"}', {}, {"q": "x"}, ()),
        ('{"p":"$${parameters.q:-d}"}', {}, {}, ("q",)),
        ('{"p":"${parameters.p.toString()}"}', {}, {"p": "x"}, ("p.toString()",)),
        (Q, {"p": "${parameters.c.toString()}"}, {}, ("c.toString()",)),
        (RAW, {"p": "[${parameters.z}]"}, {}, ("z",)),
        (Q, {"p": "x ${parameters.z}"}, {}, ("z",)),
    ],
)
def test_what_is_missing_is_named(
    template: str, own: dict[str, str], request_parameters: dict[str, str], names: tuple[str, ...]
) -> None:
    if not names:
        assert "${parameters.q}" not in rendered(template, request_parameters, own)
        return
    with pytest.raises(UnfilledPlaceholders) as caught:
        rendered(template, request_parameters, own)
    assert caught.value.names == names
    assert caught.value.reason == f"Some parameter placeholder not filled in payload: {', '.join(names)}"


@pytest.mark.parametrize("value", ["hi", "hi there", "[1,", "{a:1}", "nan"])
def test_a_value_that_is_no_json_at_a_bare_placeholder_is_refused_and_not_repeated(value: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        rendered(RAW, {"p": value})
    assert "[p]" in caught.value.reason
    assert value not in caught.value.reason


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('[{"t":"a\\"b"}]', '{"p":"ctx: [{\\"t\\":\\"a\\\\\\"b\\"}]"}'),
        ("plain", '{"p":"ctx: plain"}'),
    ],
)
def test_to_string_inside_a_connectors_value_is_the_text(value: str, expected: str) -> None:
    assert rendered(Q, {"c": value}, {"p": "ctx: ${parameters.c.toString()}"}) == expected


def test_a_connectors_parameter_may_be_called_to_string() -> None:
    own = {"p": "${parameters.c.toString()}", "c.toString()": "own", "c": "other"}
    assert rendered(Q, {}, own) == '{"p":"own"}'
    assert rendered('{"p":"${parameters.c.toString()}"}', {}, own) == '{"p":"own"}'


def test_what_an_escaped_placeholder_stands_for_keeps_its_dollar() -> None:
    assert rendered('{"p":"$${parameters.q}"}', {"q": "x"}) == '{"p":"$x"}'


def text_of(source: str, request: dict[str, str], own: dict[str, str] | None = None) -> str:
    return Template.compile(source, json=False).render_text(Parameters(ConnectorParameters.compile(own or {}), request))


@pytest.mark.parametrize(
    ("source", "own", "request_parameters", "expected"),
    [
        ("https://${parameters.host}/v1", {"host": "h"}, {}, "https://h/v1"),
        ("https://${parameters.host}/v1", {"host": "h"}, {"host": 'a"b'}, 'https://a"b/v1'),
        ("${parameters.a}-${parameters.a}", {"a": "${parameters.b}"}, {"b": "c"}, "c-c"),
        ("${parameters.a:-d}", {}, {}, "d"),
        ('"${parameters.a:-null}"', {}, {}, '"null"'),
        ('"${parameters.a:-null}"', {}, {"a": "x"}, '"x"'),
        ("plain", {}, {}, "plain"),
    ],
)
def test_a_template_that_is_no_json_is_filled_with_text_as_it_is(
    source: str, own: dict[str, str], request_parameters: dict[str, str], expected: str
) -> None:
    assert text_of(source, request_parameters, own) == expected


def test_every_placeholder_of_a_template_that_is_no_json_counts_as_quoted() -> None:
    template = Template.compile('"${parameters.a:-null}"/${parameters.b}', json=False)
    assert template.placeholders == (Placeholder("a", "null", quoted=True), Placeholder("b", None, quoted=True))


def test_a_placeholder_behind_a_string_does_not_own_the_quote_before_it() -> None:
    template = Template.compile('["a"${parameters.p:-null}"b"]')
    assert template.placeholders == (Placeholder("p", "null", quoted=False),)
    assert template.literals == ('["a"', '"b"]')


def test_a_parameter_of_the_request_goes_before_the_connectors() -> None:
    parameters = Parameters(ConnectorParameters.compile({"a": "own", "b": "${parameters.c}"}), {"a": "given", "c": "d"})
    assert (parameters.get("a"), parameters.get("b"), parameters.get("b", "e")) == ("given", "d", "d")
    assert (parameters.get("x"), parameters.get("x", "default")) == (None, "default")


def test_literals_can_be_changed_without_becoming_placeholders() -> None:
    changed = Template.compile("A ${parameters.p} b").map_literals(lambda text: text.lower() + "${parameters.q}")
    assert changed.literals == ("a ${parameters.q}", " b${parameters.q}")
    assert [placeholder.name for placeholder in changed.placeholders] == ["p"]


def test_parameters_that_are_missing_in_a_url_are_filled_with_stand_ins() -> None:
    own = ConnectorParameters.compile({"path": "v1/${parameters.model}", "host": "h"})
    url = "https://${parameters.host}/${parameters.path}/${parameters.what}?${parameters.what}${parameters.x:-y}"
    assert fill_with_stand_ins(url, own, {}, str.upper) == "https://h/v1/MODEL/WHAT?WHATy"
    request = {"what": "chat"}
    assert fill_with_stand_ins(url, own, request, str.upper) == "https://h/v1/MODEL/chat?chaty"
    assert request == {"what": "chat"}


def test_a_connectors_values_that_name_each_other_are_an_error_with_the_way() -> None:
    with pytest.raises(InvalidRequest, match=r"parameters\.a: a->b->a") as caught:
        rendered('{"p":"${parameters.a}"}', {}, {"a": "${parameters.b}", "b": "${parameters.a}"})
    assert caught.value.status == 400


@given(st.text(st.characters(codec="utf-8")))
def test_any_text_survives_a_quoted_placeholder(text: str) -> None:
    assert json.loads(rendered(Q, {"p": text})) == {"p": text}


@given(st.text(st.characters(codec="utf-8")))
def test_any_text_survives_a_quoted_placeholder_in_a_connectors_json_value(text: str) -> None:
    own = {"p": '[{"role":"user","content":"${parameters.inputs}"}]'}
    assert json.loads(rendered(RAW, {"inputs": text}, own)) == {"p": [{"role": "user", "content": text}]}


@given(st.text(st.characters(codec="utf-8")))
def test_a_bare_placeholder_takes_json_or_is_refused(text: str) -> None:
    if is_json(text):
        json.loads(rendered(RAW, {"p": text}))
    else:
        with pytest.raises(InvalidRequest):
            rendered(RAW, {"p": text})


OPTIONAL = (
    '{ "m": 1, "a": ${parameters.a:-null} ,\n"b-b" : ${parameters.b:-null}, "o": {"x": 2, "c":${parameters.c:-null}} }'
)


@given(st.fixed_dictionaries({}, optional={name: st.sampled_from(["0.10", "[1]", "null", '"s"']) for name in "abc"}))
def test_an_optional_member_is_there_if_its_parameter_is(request: dict[str, str]) -> None:
    given = {name: json.loads(text) for name, text in request.items()}
    inner = {"x": 2} | {name: value for name, value in given.items() if name == "c"}
    outer = {{"b": "b-b"}.get(name, name): value for name, value in given.items() if name != "c"}
    template = rendered(OPTIONAL, {name: J(text) for name, text in request.items()})
    assert json.loads(template) == {"m": 1, **outer, "o": inner}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ('{"a":${parameters.p:-null}}', '{"a":null}'),  # the first member: its comma would be the next one's
        ('{"m":1, "a":"${parameters.p:-null}"}', '{"m":1, "a":null}'),
        ('{"m":1, "a":"x, \\"b\\": ${parameters.p:-null}"}', '{"m":1, "a":"x, \\"b\\": null"}'),
        ('{"m":1, "a":[2, ${parameters.p:-null}]}', '{"m":1, "a":[2, null]}'),
        ('{"m":1, "a":[${parameters.p:-null}]}', '{"m":1, "a":[null]}'),
        ('{"m":1, "a":${parameters.p:-0}}', '{"m":1, "a":0}'),
        ("${parameters.p:-null}", "null"),
        (": ${parameters.p:-null}", ": null"),
    ],
)
def test_only_a_member_after_another_is_left_out(template: str, expected: str) -> None:
    assert rendered(template, {}) == expected


def test_an_optional_member_takes_the_connectors_parameter_and_refuses_what_is_no_json() -> None:
    template = '{"m":1,"a":${parameters.a:-null}}'
    assert rendered(template, {}, {"a": "0.5"}) == '{"m":1,"a":0.5}'
    assert rendered(template, {"b": J("[1]")}, {"a": '{"x":${parameters.b}}'}) == '{"m":1,"a":{"x":[1]}}'
    assert rendered(template, {"a": json.loads(r'"\"text\""')}) == '{"m":1,"a":"text"}'
    with pytest.raises(InvalidRequest, match=r'^Parameter \[a\] .* must be JSON: .* as in "\\"text\\""$'):
        rendered(template, {"a": "soon"})

"""Templates, URLs, headers and charsets in bounded time and size, whatever the parameters are."""

import pytest

from opensearch_ml_stream.connectors.documents import MAX_URL_LENGTH, Action, Connector
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction, find_codec
from opensearch_ml_stream.connectors.rendering.template import (
    MAX_NESTED_PARAMETERS,
    MAX_PLACEHOLDERS,
    MAX_RENDERED_CHARS,
    ConnectorParameters,
    Parameters,
    Template,
    fill_with_stand_ins,
)
from opensearch_ml_stream.connectors.stream_parameter import MAX_SPEC_CHARS, read_stream_spec
from opensearch_ml_stream.connectors.stream_spec_lookup import spec_for
from tests.counted_work import steps


def _tenfold(last: str, levels: int = 12) -> dict[str, str]:
    return {f"p{level}": f"${{parameters.p{level + 1}}}" * 10 for level in range(levels)} | {f"p{levels}": last}


def _action(
    parameters: dict[str, str], url: str = "https://h/", body: str = '{"a":"${parameters.x:-y}"}'
) -> CompiledAction:
    return CompiledAction.compile(
        Action("PREDICT", "POST", url, request_body=body), ConnectorParameters.compile(parameters), {}
    )


def test_parameters_that_hold_each_other_ten_times_are_filled_once_each() -> None:
    def fill() -> None:
        own = ConnectorParameters.compile(_tenfold(""))
        assert Template.compile('["${parameters.p0}"]').render_json(Parameters(own, {})) == '[""]'
        assert fill_with_stand_ins("https://h/${parameters.p0}", own, {}, str.upper) == "https://h/"

    assert steps(fill) < 20_000


@pytest.mark.parametrize("url", ["https://h/", "https://h/${parameters.p0}"])
def test_what_they_grow_to_is_bounded(url: str) -> None:
    def render() -> None:
        with pytest.raises(InvalidRequest, match="more than"):
            _action(_tenfold("x"), url, '{"a":"${parameters.p0}"}').render({})

    assert steps(render) < 20_000


def test_a_url_of_a_connector_is_no_longer_filled_than_it_may_be() -> None:
    connector = Connector(
        "c", "1", "http", _tenfold("x", 5), {}, (Action("PREDICT", "POST", "https://h/${parameters.p0}"),)
    )
    with pytest.raises(InvalidRequest, match=f"more than {MAX_URL_LENGTH} characters"):
        spec_for(connector, connector.action(), {})


def test_a_long_prompt_may_be_longer_than_the_bound_but_not_repeated() -> None:
    prompt = "x" * (MAX_RENDERED_CHARS + 1)
    assert len(_action({}, body='{"a":"${parameters.x}"}').render({"x": prompt}).body) == len(prompt) + 8
    with pytest.raises(InvalidRequest, match="more than twice as many"):
        _action({}, body='{"a":"' + "${parameters.x}" * 3 + '"}').render({"x": prompt})


def test_parameters_nested_without_end_are_refused() -> None:
    chain = {f"p{level}": f"${{parameters.p{level + 1}}}" for level in range(MAX_NESTED_PARAMETERS + 2)}
    with pytest.raises(InvalidRequest, match=f"hold each other more than {MAX_NESTED_PARAMETERS} deep"):
        Template.compile("${parameters.p0}", json=False).render_text(Parameters(ConnectorParameters.compile(chain), {}))


def test_a_template_may_have_so_many_placeholders() -> None:
    assert len(Template.compile("${parameters.x}" * MAX_PLACEHOLDERS).placeholders) == MAX_PLACEHOLDERS
    with pytest.raises(InvalidRequest, match=f"more than {MAX_PLACEHOLDERS} placeholders"):
        Template.compile("${parameters.x}" * (MAX_PLACEHOLDERS + 1))


@pytest.mark.parametrize("piece", ["${parameters.x:-", "${parameters.", "$", '"', r"\"", "\\", "${"])
def test_a_template_that_never_ends_is_compiled_in_time_linear_in_it(piece: str) -> None:
    """Were it quadratic, so long a template would take longer than any test may."""
    assert Template.compile(piece * (4_000_000 // len(piece))).placeholders == ()


@pytest.mark.parametrize("escaped", [r'{"a":"\\\"${parameters.x}"}', r'{"a":"\\","b":"${parameters.x}"}'])
def test_a_quote_behind_backslashes_ends_a_string_or_does_not(escaped: str) -> None:
    assert Template.compile(escaped).placeholders[0].quoted
    assert not Template.compile(r'{"a":"\\",${parameters.x}').placeholders[0].quoted


@pytest.mark.parametrize("values", [{"x": "é" * 1_000_000}, {f"x{n}": "x" * 16_000 for n in range(500)}])
def test_a_value_that_no_url_can_hold_is_not_even_encoded(values: dict[str, str]) -> None:
    url = "https://h/" + "".join(f"${{parameters.{name}}}" for name in values)
    action = _action({}, url)

    def render() -> None:
        with pytest.raises(InvalidRequest, match=f"more than {MAX_URL_LENGTH} characters"):
            action.render(values)

    assert steps(render) < 50_000


@pytest.mark.parametrize(
    ("charset", "codec"),
    [("UTF-8", "utf_8"), ("utf8", "utf_8"), ("iso-8859-1", "latin_1"), ("windows-1252", "cp1252")],
)
def test_a_charset_is_found_by_its_name(charset: str, codec: str) -> None:
    assert find_codec(charset) == codec
    assert _action({}).render({"charset": charset}).charset == codec


def test_without_a_charset_a_body_is_utf_8() -> None:
    assert _action({}).render({"charset": "", "x": "é"}).body == '{"a":"é"}'.encode()


@pytest.mark.parametrize(
    "charset", ["undefined", "idna", "punycode", "\x00", "utf-8\x00", "base64", "rot13", "../os", "x" * 1_000_000, " "]
)
def test_what_is_no_charset_is_refused(charset: str) -> None:
    with pytest.raises(InvalidRequest, match="not the name of a charset"):
        _action({}).render({"charset": charset})


def test_a_stream_parameter_is_bounded() -> None:
    with pytest.raises(InvalidRequest, match=f"_stream: may have {MAX_SPEC_CHARS} characters"):
        read_stream_spec(" " * (MAX_SPEC_CHARS + 1))
    nested = '{"preset":"sagemaker/invocations","payload":' * 20 + "{}" + "}" * 20
    with pytest.raises(InvalidRequest, match=r"_stream\.payload\.payload: a payload holds no other"):
        read_stream_spec(nested)
    with pytest.raises(InvalidRequest, match="_stream: must be a string that holds a JSON object"):
        read_stream_spec("[" * 3_000)


def test_a_host_that_is_no_address_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="trying to create uri"):
        _action({}, "http://[x/").render({})

"""What a caller gives arrives in the provider's request as the provider wants it, for every shipped blueprint.

A request's body is read, rendered by the blueprint, and compared with the blueprint's row in `provider_requests`.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.documents import Connector, connector_document, read_connector
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.inputs import read_predict_input
from opensearch_ml_stream.connectors.predict.pre_process import Step, plan_steps
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.connectors.stream_spec import StreamSpec
from opensearch_ml_stream.connectors.stream_spec_lookup import spec_for
from tests.selection import caller_values as values
from tests.selection.provider_requests import PROVIDER_REQUESTS
from tests.selection.provider_requests.rows import Path as Keys
from tests.selection.provider_requests.rows import Place

_FOLDER = Path(__file__).parents[3] / "blueprints"
_GONE = object()

every_chat = pytest.mark.parametrize("name", [name for name, row in PROVIDER_REQUESTS.items() if row.asks])
every_vector = pytest.mark.parametrize("name", [name for name, row in PROVIDER_REQUESTS.items() if not row.asks])


class Number(str):
    """A number by its text."""


def exact(body: bytes | str) -> Any:
    """Parse JSON with each number as its text. A name twice in an object is an error."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs), "a name occurs twice"
        return dict(pairs)

    return json.loads(body, parse_int=Number, parse_float=Number, object_pairs_hook=unique)


@cache
def blueprint(name: str) -> tuple[Connector, CompiledAction, StreamSpec | None]:
    body = json.loads((_FOLDER / f"{name}.json").read_text("utf-8"))["connector"]
    connector = read_connector(connector_document(body))
    action = connector.action()
    given = dict.fromkeys(connector.credential, "a key")
    compiled = CompiledAction.compile(action, ConnectorParameters.compile(connector.parameters), given)
    streams = bool(PROVIDER_REQUESTS[name].asks)
    return connector, compiled, spec_for(connector, action, {}) if streams else None


def sent(name: str, parameters: dict[str, str], stream: bool = False, more: str = "") -> list[bytes]:
    """The bodies of the calls for a request with these parameters, which are JSON texts."""
    connector, action, spec = blueprint(name)
    members = ",".join(f"{json.dumps(key)}:{value}" for key, value in parameters.items())
    predict_input = read_predict_input(f'{{"parameters":{{{members}}}{more}}}'.encode())
    steps = plan_steps(action.action, connector.parameters, predict_input)
    bodies = [action.render(step.parameters, spec if stream else None).body for step in steps if isinstance(step, Step)]
    for body in bodies:
        jsonschema.Draft202012Validator(PROVIDER_REQUESTS[name].schema).validate(json.loads(body))
    return bodies


def at(body: Any, path: Keys) -> Any:
    for key in path:
        body = body[key]
    return body


def without(body: Any, path: Keys) -> Any:
    """The body with what is at the path, if anything is, taken out."""
    if not path:
        return _GONE
    copy: Any = list(body) if isinstance(body, list) else {path[0]: None, **body}
    copy[path[0]] = without(copy[path[0]], path[1:])
    return copy


def wanted(place: Place, written: str) -> Any:
    value = exact(written)
    return f"{place.before}{value}{place.after}" if place.before else value


@every_chat
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_what_a_caller_gives_arrives_at_its_place_and_changes_nothing_else(name: str, data: st.DataObject) -> None:
    row = PROVIDER_REQUESTS[name]
    question = data.draw(st.sampled_from(sorted(row.asks)))
    others = data.draw(st.sets(st.sampled_from(sorted(row.takes)))) if row.takes else ()
    places = {question: row.asks[question], **{other: row.takes[other] for other in others}}
    parameters = {key: data.draw(place.written, key) for key, place in places.items()}
    stream = data.draw(st.booleans())
    [body] = sent(name, parameters, stream)
    [plain] = sent(name, {question: '"Why?"' if question in ("inputs", "prompt", "message") else parameters[question]})
    left, plain_left = exact(body), {**exact(plain), **(exact(json.dumps(row.streams)) if stream else {})}
    for key, place in places.items():
        assert at(left, place.path) == wanted(place, parameters[key])
        left, plain_left = without(left, place.path), without(plain_left, place.path)
    assert left == plain_left


@every_chat
@pytest.mark.parametrize("stream", [False, True])
def test_the_least_that_a_caller_can_send_has_nothing_empty_in_it(name: str, stream: bool) -> None:
    [body] = sent(name, {"inputs": '"Why?"'}, stream)
    assert b"${" not in body
    assert _empty(json.loads(body)) == []


@every_vector
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_texts_arrive_in_their_order(name: str, data: st.DataObject) -> None:
    row = PROVIDER_REQUESTS[name]
    texts = data.draw(st.lists(values.TEXTS, min_size=1, max_size=3))
    parameters = {key: data.draw(place.written, key) for key, place in row.takes.items()}
    query = ',"query_text":"Why?"' if "rerank" in name else ""
    bodies = sent(name, parameters, more=f',"text_docs":{json.dumps(texts)}{query}')
    assert row.texts is not None
    arrived = [at(json.loads(body), row.texts) for body in bodies]
    assert (arrived if isinstance(arrived[0], str) else [text for group in arrived for text in group]) == texts
    for key, place in row.takes.items():
        assert {at(exact(body), place.path) for body in bodies} == {wanted(place, parameters[key])}


@every_chat
@pytest.mark.parametrize("text", [r'"\ud800"', r'"a \udc00 b"', r'"\ud83d\ud83d\ude00"'])
def test_half_of_a_surrogate_pair_is_refused_and_never_sent(name: str, text: str) -> None:
    with pytest.raises(InvalidRequest, match="half of a surrogate pair"):
        sent(name, {"inputs": text})


def _empty(value: Any, path: str = "") -> list[str]:
    """The paths of what is null, an empty string, array or object."""
    if value in (None, "", [], {}):
        return [path]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, item in inner for found in _empty(item, f"{path}.{key}")]

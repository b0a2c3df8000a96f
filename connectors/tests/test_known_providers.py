"""All providers as one: found by their modules, told apart by URLs and shapes, with those of other packages."""

from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest

from opensearch_ml_stream.connectors import providers
from opensearch_ml_stream.connectors.chunks import Chunk
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.known_providers import SHIPPED, KnownProviders
from opensearch_ml_stream.connectors.provider import Interface, Provider, WholeResponse
from opensearch_ml_stream.connectors.providers.ollama import OLLAMA
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT
from opensearch_ml_stream.connectors.selection.stream_parameter import read_stream_spec
from opensearch_ml_stream.connectors.stream_spec import StreamSpec
from opensearch_ml_stream.connectors.unstreamed_response import read_whole_response
from tests.providers.recorded_streams import EXCHANGES, play
from tests.providers.recordings.recording_files import WHOLE_RESPONSES

ACME_STREAM = StreamSpec("acme/words", OLLAMA.enable, OLLAMA.framing, OLLAMA.reader)


def known(*interfaces: Interface, **more: object) -> KnownProviders:
    return SHIPPED.with_others([Provider(interfaces, **more)])  # type: ignore[arg-type]


def test_the_provider_of_every_module_is_found() -> None:
    [folder] = providers.__path__
    modules = [file for file in Path(folder).rglob("*.py") if "\nPROVIDER = " in file.read_text("utf-8")]
    assert len(modules) > 20
    assert len(SHIPPED.providers) == len(modules)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://h/acme/chat/completions", ACME_STREAM),
        ("http://h/acme/chat/completions/", ACME_STREAM),
        ("http://h/other/chat/completions?v=1", OPENAI_CHAT),
        ("http://h/other/chat/completions?of=/acme/chat/completions", OPENAI_CHAT),
        ("http://h/words", None),
    ],
)
def test_the_longest_match_of_all_expressions_decides(url: str, expected: StreamSpec | None) -> None:
    acme = Interface(("acme/words",), ACME_STREAM, (r"/acme/chat/completions\?",))
    for all_known in (known(acme), KnownProviders.of([Provider((acme,)), *SHIPPED.providers])):
        assert _spec_of(all_known, url) is expected


def test_a_host_counts_where_an_expression_names_it() -> None:
    acme = known(Interface((), ACME_STREAM, (r"^//([a-z]+\.)?acme\.example/(.*/)?chat/completions\?",)))
    assert _spec_of(acme, "https://eu.acme.example/v1/chat/completions") is ACME_STREAM
    for url in ("https://acme.example.org/v1/chat/completions", "https://h/acme.example/chat/completions"):
        assert _spec_of(acme, url) is OPENAI_CHAT


def _spec_of(all_known: KnownProviders, url: str) -> StreamSpec | None:
    interface = all_known.find_by_url(urlsplit(url))
    return None if interface is None else interface.spec


def test_two_interfaces_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"interface named \[ollama/api/chat\]"):
        known(Interface((OLLAMA.name,), ACME_STREAM))
    assert known(Interface((OLLAMA.name,), OLLAMA)).presets == SHIPPED.presets


def test_what_all_providers_say_is_put_together() -> None:
    acme = known(trusted_endpoints=("^https://acme/.*$",), model_parameters=frozenset({"flavour"}))
    assert set(acme.trusted_endpoints) - set(SHIPPED.trusted_endpoints) == {"^https://acme/.*$"}
    assert acme.model_parameters - SHIPPED.model_parameters == {"flavour"}


def test_the_words_of_providers_are_known_to_streams_that_a_connector_describes() -> None:
    described = '{"framing": "ndjson", "events": {"text": "$.t", "finish": "$.why"}}'
    acme = known(finish_words={"full": "length"})
    _, outcome = play(read_stream_spec(described, acme).decoder(), [b'{"t": "a", "why": "FULL"}\n'])
    assert getattr(outcome, "finish_reason", None) == "length"
    assert (finish_reason("full"), finish_reason("Full", acme.finish_words)) == ("stop", "length")


def test_a_whole_response_is_of_one_interface_at_most() -> None:
    """So their order does not matter, nor what others add."""
    responses = [call.response for exchange in EXCHANGES.values() for call in exchange.calls]
    responses += [orjson.loads(recording.data) for recording in WHOLE_RESPONSES]
    counts = [
        sum(whole.is_of(response) for whole, _ in SHIPPED.whole_responses)
        for response in responses
        if isinstance(response, dict)
    ]
    assert max(counts) == 1
    assert counts.count(1) > 20


def test_a_whole_response_is_read_by_the_reader_of_its_interface() -> None:
    shape = WholeResponse(
        lambda response: "acme" in response, lambda response: [{"response": response["acme"], "done": True}]
    )
    body = b'{"acme": "Hi"}'
    assert read_whole_response(body) is None
    read = read_whole_response(body, known(Interface(("acme/words",), ACME_STREAM, whole=shape)))
    assert read is not None
    assert read[0] == Chunk("Hi")

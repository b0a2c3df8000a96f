"""All providers as one: found by their modules, told apart by URLs and shapes, with those of other packages."""

from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest

from opensearch_ml_stream.connectors import providers
from opensearch_ml_stream.connectors.chunks import Chunk
from opensearch_ml_stream.connectors.conversation.dialect import Dialect
from opensearch_ml_stream.connectors.conversation.dialects import openai_compatible
from opensearch_ml_stream.connectors.conversation.dialects.chat_completions import COMPATIBLE
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.known_providers import SHIPPED, KnownProviders
from opensearch_ml_stream.connectors.provider import Interface, Provider, WholeResponse
from opensearch_ml_stream.connectors.providers import openai_completions, openai_responses
from opensearch_ml_stream.connectors.providers.ollama import OLLAMA
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT, OPENAI_CHAT_PLAIN
from opensearch_ml_stream.connectors.stream_parameter import read_stream_spec
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


@pytest.mark.parametrize(
    ("url", "dialect"),
    [
        ("https://api.openai.com/v1/chat/completions", openai_compatible.OPENAI),
        ("https://eu.api.openai.com/v1/chat/completions", openai_compatible.OPENAI),
        (
            "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21",
            openai_compatible.OPENAI,
        ),
        ("https://x.openai.azure.com/openai/v1/chat/completions", openai_compatible.OPENAI),
        (
            "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-02-01",
            openai_compatible.AZURE_OLD,
        ),
        (
            "https://x.services.ai.azure.com/models/chat/completions?api-version=2024-05-01-preview",
            openai_compatible.AZURE_OLD,
        ),
        ("https://api.mistral.ai/v1/chat/completions", openai_compatible.MISTRAL),
        ("https://api.groq.com/openai/v1/chat/completions", openai_compatible.GROQ),
        ("https://api.deepseek.com/chat/completions", openai_compatible.DEEPSEEK),
        ("https://api.deepseek.com/v1/chat/completions", openai_compatible.DEEPSEEK),
        ("https://api.x.ai/v1/chat/completions", openai_compatible.XAI),
        ("https://api.perplexity.ai/chat/completions", openai_compatible.PERPLEXITY),
        ("https://openrouter.ai/api/v1/chat/completions", openai_compatible.OPENROUTER),
        ("https://api.fireworks.ai/inference/v1/chat/completions", openai_compatible.TAKES_REASONING_CONTENT),
        ("https://adb-1.2.azuredatabricks.net/serving-endpoints/m/invocations", openai_compatible.DATABRICKS),
        ("https://dashscope-intl.aliyuncs.com/compatible-mode/v1/chat/completions", openai_compatible.DASHSCOPE),
        ("https://us-south.ml.cloud.ibm.com/ml/v1/text/chat?version=2024-05-31", openai_compatible.WATSONX),
        ("https://api.together.xyz/v1/chat/completions", COMPATIBLE),
        ("https://router.huggingface.co/v1/chat/completions", COMPATIBLE),
        ("https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1/chat/completions", COMPATIBLE),
        ("https://h/api.openai.com/v1/chat/completions", COMPATIBLE),
        ("http://localhost:8000/v1/completions", openai_completions.DIALECT),
        ("https://api.openai.com/v1/responses", openai_responses.DIALECT),
    ],
)
def test_a_host_of_openais_kin_has_its_own_dialect(url: str, dialect: Dialect) -> None:
    interface = SHIPPED.find_by_url(urlsplit(url))
    assert interface is not None
    assert SHIPPED.dialect_of(interface) is dialect


def test_no_variant_of_the_stream_inherits_the_dialect_of_the_provider_it_is_named_after() -> None:
    """OPENAI_CHAT_PLAIN has the name of Mistral's."""
    plain = [one for known in SHIPPED.providers for one in known.interfaces if one.spec is OPENAI_CHAT_PLAIN]
    assert len(plain) > 3
    assert all(interface.dialect is not None for interface in plain)


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

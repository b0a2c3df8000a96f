"""Select a connector's stream spec: by its parameter `_stream`, its `_llm_interface`, the URL, or the request's.

Clients of ML Commons send `_llm_interface` with every request, often the wrong one. So a request's value counts only if
neither the connector's parameters nor its URL decide.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from opensearch_ml_stream.connectors.documents import Action, Connector, check_url_length
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.providers.anthropic import ANTHROPIC, VERTEX_ANTHROPIC
from opensearch_ml_stream.connectors.providers.bedrock_converse import BEDROCK_CONVERSE
from opensearch_ml_stream.connectors.providers.cohere import COHERE_V1, COHERE_V2
from opensearch_ml_stream.connectors.providers.dashscope import DASHSCOPE
from opensearch_ml_stream.connectors.providers.google.gemini import GEMINI
from opensearch_ml_stream.connectors.providers.google.interactions import GEMINI_INTERACTIONS
from opensearch_ml_stream.connectors.providers.model_hosts.bedrock_invoke import BEDROCK_INVOKE
from opensearch_ml_stream.connectors.providers.model_hosts.generate_stream import GENERATE_STREAM
from opensearch_ml_stream.connectors.providers.model_hosts.sagemaker import SAGEMAKER
from opensearch_ml_stream.connectors.providers.model_hosts.workers_ai_run import WORKERS_AI
from opensearch_ml_stream.connectors.providers.ollama import OLLAMA
from opensearch_ml_stream.connectors.providers.open_inference import OPEN_INFERENCE
from opensearch_ml_stream.connectors.providers.openai.chat import OPENAI_CHAT, OPENAI_CHAT_PLAIN
from opensearch_ml_stream.connectors.providers.openai.completions import OPENAI_COMPLETIONS
from opensearch_ml_stream.connectors.providers.openai.responses import OPENAI_RESPONSES
from opensearch_ml_stream.connectors.providers.watsonx import WATSONX_CHAT, WATSONX_GENERATION
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters, fill_with_stand_ins
from opensearch_ml_stream.connectors.selection.presets import PRESETS
from opensearch_ml_stream.connectors.selection.stream_parameter import read_stream_spec
from opensearch_ml_stream.connectors.stream_spec import StreamSpec
from opensearch_ml_stream.connectors.syntax.regex import compile_regex

_WHAT_TO_ADD = (
    "name its stream in the connector's parameters: `_llm_interface` for a known interface, `_stream` for any other"
)

# The spec by the end of the URL's path; the first pattern that matches decides.
_SPEC_BY_PATH = tuple(
    (compile_regex(pattern), spec)
    for pattern, spec in (
        (r"/chat/completions$", OPENAI_CHAT),
        (r"/responses$", OPENAI_RESPONSES),
        (r"/v1/messages$", ANTHROPIC),
        (r"/model/.+/converse(-stream)?$", BEDROCK_CONVERSE),
        (r"/model/.+/invoke(-with-response-stream)?$", BEDROCK_INVOKE),
        (r"/serving-endpoints/.+/invocations$", OPENAI_CHAT_PLAIN),
        (r"/endpoints/.+/invocations(-response-stream)?$", SAGEMAKER),
        (r"/publishers/anthropic/models/.+:(streamR|r)awPredict$", VERTEX_ANTHROPIC),
        (r":(streamG|g)enerateContent$", GEMINI),
        (r"/interactions$", GEMINI_INTERACTIONS),
        (r"/ai/run/@.+$", WORKERS_AI),
        (r"/services/aigc/(text|multimodal)-generation/generation$", DASHSCOPE),
        (r"/text/chat(_stream)?$", WATSONX_CHAT),
        (r"/text/generation(_stream)?$", WATSONX_GENERATION),
        (r"/v2/chat$", COHERE_V2),
        (r"/v1/chat$", COHERE_V1),
        (r"/api/(chat|generate)$", OLLAMA),
        (r"/v2/models/.+/(infer|generate)(_stream)?$", OPEN_INFERENCE),
        (r"/completions$", OPENAI_COMPLETIONS),
        (r"/generate(_stream)?$", GENERATE_STREAM),
    )
)
_NO_STREAM_PATH = re.compile(
    r"/(embeddings?|embed|embed_all|rerank|v1/similarity|semantic_embed|textEmbedding|moderations|classify|batches)$"
    r"|:(predict|embedContent|batchEmbedContents|countTokens)$"
)
_NO_STREAM_MODEL = re.compile(r"embed|rerank|stable-|stability\.|titan-image|nova-canvas|nova-reel", re.IGNORECASE)
_NO_STREAM_FUNCTION = re.compile(r"connector\.(pre|post)_process\..*(embedding|rerank|batch)")
_BEDROCK_MODEL = compile_regex(r"/model/(.+)/(?:invoke|converse)")
_OLD_AZURE = re.compile(r"(?:^|&)api-version=(20(?:2[0-3]-..|24-0[1-8])-..)")


@dataclass(frozen=True, slots=True)
class _UrlMatch:
    """What an action's URL and functions show: a spec, the reason why it cannot stream, or neither."""

    spec: StreamSpec | None = None
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class SpecChoice:
    """A stream spec, and what decided for it, for people to read."""

    spec: StreamSpec
    reason: str


def spec_for(
    connector: Connector,
    action: Action,
    parameters: Mapping[str, str],
    presets: Mapping[str, StreamSpec] = PRESETS,
) -> StreamSpec:
    """Return the stream spec of a connector's action; see `choose_spec`."""
    return choose_spec(connector, action, parameters, presets).spec


def choose_spec(
    connector: Connector,
    action: Action,
    parameters: Mapping[str, str],
    presets: Mapping[str, StreamSpec] = PRESETS,
) -> SpecChoice:
    """Return the stream spec of a connector's action, and why it is that one; `parameters` are the request's.

    `presets` are those that `_llm_interface` can name: with those of extensions, where these are on.

    The caller passes no request parameter but `_llm_interface`, and caches the result by it. So a placeholder in the
    URL that the connector's parameters do not fill is read as `_`, even if the request has a value for it.
    InvalidRequest says why the connector cannot stream and what to add to its parameters.
    """
    own = connector.parameters.get("_stream")
    if own is not None:
        return SpecChoice(read_stream_spec(own), "the connector's parameter _stream says so")
    url_match = _match_url(connector, action, parameters)
    if url_match.refusal is not None:
        raise InvalidRequest(f"{url_match.refusal}, so connector [{connector.name}] cannot stream")
    preset = _preset(connector.parameters.get("_llm_interface"), presets)
    if preset is not None:
        return SpecChoice(
            _without_refused_options(preset, url_match.spec), "the connector's parameter _llm_interface names it"
        )
    if url_match.spec is not None:
        return SpecChoice(url_match.spec, "the connector's url is of this interface")
    preset = _preset(parameters.get("_llm_interface"), presets)
    if preset is not None:
        return SpecChoice(preset, "the request's parameter _llm_interface names it, and nothing else decides")
    raise _no_spec(connector, parameters, presets)


def interface_name(value: str) -> str:
    r"""Return an `_llm_interface` value as ML Commons reads it: trimmed, in lower case, `\/` as `/`."""
    return value.strip().lower().replace("\\/", "/")


def _preset(name: str | None, presets: Mapping[str, StreamSpec]) -> StreamSpec | None:
    return None if name is None else presets.get(interface_name(name))


def _without_refused_options(preset: StreamSpec, url_spec: StreamSpec | None) -> StreamSpec:
    """Return OPENAI_CHAT_PLAIN for OPENAI_CHAT if the URL is of a server that refuses `stream_options`."""
    return OPENAI_CHAT_PLAIN if preset is OPENAI_CHAT and url_spec is OPENAI_CHAT_PLAIN else preset


def _match_url(connector: Connector, action: Action, parameters: Mapping[str, str]) -> _UrlMatch:
    for function in (action.pre_process_function, action.post_process_function):
        if function and _NO_STREAM_FUNCTION.match(function):
            return _UrlMatch(refusal=f"Its action makes vectors or scores ({function}), which do not stream")
    # A missing parameter becomes `_`: the rest of the path shows the interface all the same.
    own = ConnectorParameters.compile(connector.parameters)
    filled = fill_with_stand_ins(action.url, own, parameters, lambda name: "_")
    check_url_length(len(filled))
    url = urlsplit(filled)
    path = url.path.rstrip("/")
    if _NO_STREAM_PATH.search(path):
        return _UrlMatch(refusal=f"Its URL's path ends in [{path.rsplit('/', 1)[-1]}], whose response does not stream")
    model = _BEDROCK_MODEL.search(path)
    if model and _NO_STREAM_MODEL.search(unquote(model[1])):
        return _UrlMatch(refusal=f"The model [{unquote(model[1])}] makes no text")
    spec = next((spec for pattern, spec in _SPEC_BY_PATH if pattern.search(path)), None)
    if spec is SAGEMAKER and action.pre_process_function and "_llm_interface" not in connector.parameters:
        return _UrlMatch(
            refusal="Its action takes text_docs by a pre_process_function, as SageMaker's models of vectors, scores "
            "and highlights do (name `_llm_interface` or `_stream` in its parameters if this one streams)"
        )
    if spec is OPENAI_CHAT and _refuses_stream_options(url.hostname or "", url.query):
        spec = OPENAI_CHAT_PLAIN
    return _UrlMatch(spec)


def _refuses_stream_options(host: str, query: str) -> bool:
    return host.endswith(("mistral.ai", "perplexity.ai")) or _OLD_AZURE.search(query) is not None


def _no_spec(connector: Connector, parameters: Mapping[str, str], presets: Mapping[str, StreamSpec]) -> InvalidRequest:
    interface = connector.parameters.get("_llm_interface", parameters.get("_llm_interface"))
    if interface is None:
        return InvalidRequest(
            f"Connector [{connector.name}] cannot stream: its URL is of no interface that is known here; {_WHAT_TO_ADD}"
        )
    return InvalidRequest(
        f"Connector [{connector.name}] cannot stream: [{interface}] is no known _llm_interface; "
        f"known are {', '.join(sorted(presets))}; for others set `_stream` in the connector's parameters"
    )

"""Which stream spec a connector has: `_stream`, then `_llm_interface`, then the action's URL.

ML Commons' clients send `_llm_interface` with every request, often the wrong one; so a request's value counts only
where the connector itself, by its own parameters or its URL, leaves it open.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from opensearch_ml_stream.connectors.documents import Action, Connector
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters, fill_with_stand_ins
from opensearch_ml_stream.connectors.selection.presets import (
    ANTHROPIC,
    BEDROCK_CONVERSE,
    BEDROCK_INVOKE,
    COHERE_V1,
    COHERE_V2,
    GEMINI,
    GENERATE_STREAM,
    OLLAMA,
    OPEN_INFERENCE,
    OPENAI_CHAT,
    OPENAI_CHAT_PLAIN,
    OPENAI_COMPLETIONS,
    OPENAI_RESPONSES,
    PRESETS,
    SAGEMAKER,
    VERTEX_ANTHROPIC,
)
from opensearch_ml_stream.connectors.selection.stream_parameter import read_stream_spec
from opensearch_ml_stream.connectors.stream_spec import StreamSpec

_WHAT_TO_ADD = (
    "name its stream in the connector's parameters: `_llm_interface` for a known interface, `_stream` for any other"
)

# By the end of the URL's path; the first that fits counts.
_BY_PATH = tuple(
    (re.compile(pattern), spec)
    for pattern, spec in (
        (r"/chat/completions$", OPENAI_CHAT),
        (r"/responses$", OPENAI_RESPONSES),
        (r"/v1/messages$", ANTHROPIC),
        (r"/model/.+/converse(-stream)?$", BEDROCK_CONVERSE),
        (r"/model/.+/invoke(-with-response-stream)?$", BEDROCK_INVOKE),
        (r"/endpoints/.+/invocations(-response-stream)?$", SAGEMAKER),
        (r"/publishers/anthropic/models/.+:(streamR|r)awPredict$", VERTEX_ANTHROPIC),
        (r":(streamG|g)enerateContent$", GEMINI),
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
_BEDROCK_MODEL = re.compile(r"/model/(.+)/(?:invoke|converse)")
_OLD_AZURE = re.compile(r"(?:^|&)api-version=(20(?:2[0-3]-..|24-0[1-8])-..)")


@dataclass(frozen=True, slots=True)
class _Found:
    """What a URL says: a spec, or why there is none."""

    spec: StreamSpec | None = None
    refusal: str | None = None


def spec_for(connector: Connector, action: Action, parameters: Mapping[str, str]) -> StreamSpec:
    """`parameters` are the request's. InvalidRequest says why the connector cannot stream, and what to add to it.

    Pure; the result depends on the request only by its `_llm_interface` and by what it puts into the URL.
    """
    own = connector.parameters.get("_stream")
    if own is not None:
        return read_stream_spec(own)
    by_url = _by_url(connector, action, parameters)
    if by_url.refusal is not None:
        raise InvalidRequest(f"{by_url.refusal}, so connector [{connector.name}] cannot stream")
    named = _named(connector.parameters.get("_llm_interface"))
    if named is not None:
        return _variant(named, by_url.spec)
    if by_url.spec is not None:
        return by_url.spec
    named = _named(parameters.get("_llm_interface"))
    if named is not None:
        return named
    raise _unknown(connector, parameters)


def interface_name(value: str) -> str:
    r"""An `_llm_interface` value as ML Commons reads it: trimmed, in lower case, `\/` for `/`."""
    return value.strip().lower().replace("\\/", "/")


def _named(value: str | None) -> StreamSpec | None:
    return None if value is None else PRESETS.get(interface_name(value))


def _variant(named: StreamSpec, by_url: StreamSpec | None) -> StreamSpec:
    """The URL may know that a server needs less than the interface's name says."""
    return OPENAI_CHAT_PLAIN if named is OPENAI_CHAT and by_url is OPENAI_CHAT_PLAIN else named


def _by_url(connector: Connector, action: Action, parameters: Mapping[str, str]) -> _Found:
    for function in (action.pre_process_function, action.post_process_function):
        if function and _NO_STREAM_FUNCTION.match(function):
            return _Found(refusal=f"Its action makes vectors or scores ({function}), which come in one piece")
    # What the request has not filled stands as `_`: the rest of the path tells the interface all the same.
    own = ConnectorParameters.compile(connector.parameters)
    url = urlsplit(fill_with_stand_ins(action.url, own, parameters, lambda name: "_"))
    path = url.path.rstrip("/")
    if _NO_STREAM_PATH.search(path):
        return _Found(refusal=f"Its URL's path ends in [{path.rsplit('/', 1)[-1]}], which does not answer in pieces")
    model = _BEDROCK_MODEL.search(path)
    if model and _NO_STREAM_MODEL.search(unquote(model[1])):
        return _Found(refusal=f"The model [{unquote(model[1])}] makes no text")
    spec = next((spec for pattern, spec in _BY_PATH if pattern.search(path)), None)
    if spec is SAGEMAKER and action.pre_process_function and "_llm_interface" not in connector.parameters:
        return _Found(
            refusal="Its action takes texts through a pre_process_function, as SageMaker's models of vectors, scores "
            "and highlights do (name `_llm_interface` or `_stream` in its parameters if this one streams)"
        )
    if spec is OPENAI_CHAT and _refuses_stream_options(url.hostname or "", url.query):
        spec = OPENAI_CHAT_PLAIN
    return _Found(spec)


def _refuses_stream_options(host: str, query: str) -> bool:
    return host.endswith("mistral.ai") or _OLD_AZURE.search(query) is not None


def _unknown(connector: Connector, parameters: Mapping[str, str]) -> InvalidRequest:
    given = connector.parameters.get("_llm_interface", parameters.get("_llm_interface"))
    if given is None:
        return InvalidRequest(
            f"Connector [{connector.name}] cannot stream: its URL is of no interface that is known here; {_WHAT_TO_ADD}"
        )
    return InvalidRequest(
        f"Connector [{connector.name}] cannot stream: [{given}] is no known _llm_interface; "
        f"known are {', '.join(sorted(PRESETS))}; for others set `_stream` in the connector's parameters"
    )

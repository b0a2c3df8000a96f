"""Select a connector's stream spec: by its parameter `_stream`, its `_llm_interface`, the URL, or the request's.

Clients of ML Commons send `_llm_interface` with every request, often the wrong one. So a request's value counts only if
neither the connector's parameters nor its URL decide. Of these two the parameters decide, unless they name an interface
that many servers share: ML Commons has one name for all that speak OpenAI's interface, and they have one path for it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from opensearch_ml_stream.connectors.conversation.dialect import Dialect
from opensearch_ml_stream.connectors.documents import Action, Connector, check_url_length
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.known_providers import SHIPPED, KnownProviders
from opensearch_ml_stream.connectors.provider import Interface
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT, OPENAI_CHAT_PLAIN
from opensearch_ml_stream.connectors.providers.sagemaker import SAGEMAKER
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters, fill_with_stand_ins
from opensearch_ml_stream.connectors.stream_parameter import read_stream_spec
from opensearch_ml_stream.connectors.stream_spec import StreamSpec
from opensearch_ml_stream.connectors.syntax.regex import compile_regex

_WHAT_TO_ADD = (
    "name its stream in the connector's parameters: `_llm_interface` for a known interface, `_stream` for any other"
)

_NO_STREAM_PATH = re.compile(
    r"/(embeddings?|embed|embed_all|rerank|v1/similarity|semantic_embed|textEmbedding|moderations|classify|batches)$"
    r"|:(predict|embedContent|batchEmbedContents|countTokens)$"
)
_NO_STREAM_MODEL = re.compile(r"embed|rerank|stable-|stability\.|titan-image|nova-canvas|nova-reel", re.IGNORECASE)
_NO_STREAM_FUNCTION = re.compile(r"connector\.(pre|post)_process\..*(embedding|rerank|batch)")
_BEDROCK_MODEL = compile_regex(r"/model/(.+)/(?:invoke|converse)")


@dataclass(frozen=True, slots=True)
class _UrlMatch:
    """What an action's URL and functions show: an interface, the reason why it cannot stream, or neither."""

    interface: Interface | None = None
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class SpecChoice:
    """A stream spec, and what decided for it, for people to read; `dialect` is how conversations are written."""

    spec: StreamSpec
    reason: str
    dialect: Dialect | None = None


def spec_for(
    connector: Connector,
    action: Action,
    parameters: Mapping[str, str],
    known: KnownProviders = SHIPPED,
) -> StreamSpec:
    """Return the stream spec of a connector's action; see `choose_spec`."""
    return choose_spec(connector, action, parameters, known).spec


def choose_spec(
    connector: Connector,
    action: Action,
    parameters: Mapping[str, str],
    known: KnownProviders = SHIPPED,
) -> SpecChoice:
    """Return the stream spec of a connector's action, and why it is that one; `parameters` are the request's.

    `known` are the providers, with those of extensions where these are on.

    The caller passes no request parameter but `_llm_interface`, and caches the result by it. So a placeholder in the
    URL that the connector's parameters do not fill is read as `_`, even if the request has a value for it.
    InvalidRequest says why the connector cannot stream and what to add to its parameters.
    """
    own = connector.parameters.get("_stream")
    if own is not None:
        spec = read_stream_spec(own, known)
        named = known.interfaces.get(spec.name)
        of_url = None if named is None else _match_url(connector, action, parameters, known).interface
        dialect = None if named is None else known.dialect_of(_spoken(named, of_url, known))
        return SpecChoice(spec, "the connector's parameter _stream says so", dialect)
    url_match = _match_url(connector, action, parameters, known)
    of_url = url_match.interface
    if url_match.refusal is not None:
        raise InvalidRequest(f"{url_match.refusal}, so connector [{connector.name}] cannot stream")
    named = _named(connector.parameters.get("_llm_interface"), known)
    if named is not None:
        spoken = _spoken(named, of_url, known)
        spec = spoken.spec if named.is_shared else _without_refused_options(named.spec, of_url)
        of_variant = "" if spoken is named else ", and its url says which variant"
        return SpecChoice(
            spec, f"the connector's parameter _llm_interface names it{of_variant}", known.dialect_of(spoken)
        )
    if of_url is not None:
        return SpecChoice(of_url.spec, "the connector's url is of this interface", known.dialect_of(of_url))
    named = _named(parameters.get("_llm_interface"), known)
    if named is not None:
        return SpecChoice(named.spec, "the request's parameter _llm_interface names it, and nothing else decides")
    raise _no_spec(connector, parameters, known.presets)


def interface_name(value: str) -> str:
    r"""Return an `_llm_interface` value as ML Commons reads it: trimmed, in lower case, `\/` as `/`."""
    return value.strip().lower().replace("\\/", "/")


def _named(name: str | None, known: KnownProviders) -> Interface | None:
    return None if name is None else known.interfaces.get(interface_name(name))


def _spoken(named: Interface, of_url: Interface | None, known: KnownProviders) -> Interface:
    """Return the interface that is named, or the one of the URL where that is a variant of it which says more.

    It does where many servers share the name, and where it says which model or version of the named provider it is.
    An interface without a dialect has one for each of its models.
    """
    if of_url is None or of_url.is_shared:
        return named
    dialect, url_dialect = known.dialect_of(named), known.dialect_of(of_url)
    if dialect is None:
        return of_url if of_url.spec is named.spec else named
    is_variant = url_dialect is not None and url_dialect.name == dialect.name
    return of_url if is_variant and (named.is_shared or known.are_of_one_provider(named, of_url)) else named


def _without_refused_options(preset: StreamSpec, of_url: Interface | None) -> StreamSpec:
    """Return OPENAI_CHAT_PLAIN for OPENAI_CHAT if the URL is of a server that refuses `stream_options`."""
    refuses = of_url is not None and of_url.spec is OPENAI_CHAT_PLAIN
    return OPENAI_CHAT_PLAIN if preset is OPENAI_CHAT and refuses else preset


def _match_url(connector: Connector, action: Action, parameters: Mapping[str, str], known: KnownProviders) -> _UrlMatch:
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
    interface = known.find_by_url(url)
    if interface is None:
        return _UrlMatch()
    if interface.spec is SAGEMAKER and action.pre_process_function and "_llm_interface" not in connector.parameters:
        return _UrlMatch(
            refusal="Its action takes text_docs by a pre_process_function, as SageMaker's models of vectors, scores "
            "and highlights do (name `_llm_interface` or `_stream` in its parameters if this one streams)"
        )
    return _UrlMatch(interface)


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

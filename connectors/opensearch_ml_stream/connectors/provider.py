"""What is known of a provider, in one value: the PROVIDER of a module of `providers/`, or of another package.

`known_providers` finds those of this package, and puts those of extensions beside them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from opensearch_ml_stream.connectors.conversation.dialect import Dialect
from opensearch_ml_stream.connectors.stream_spec import StreamSpec

JSONObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WholeResponse:
    """A response in one piece: how it is told from others, and as which events it would have been streamed.

    `to_events` raises ValueError, KeyError, TypeError, IndexError or AttributeError for one of another shape. Its
    events are read by the reader of the interface.
    """

    is_of: Callable[[JSONObject], bool]
    to_events: Callable[[JSONObject], Iterable[JSONObject]]


@dataclass(frozen=True, slots=True)
class Interface:
    """One way in which a provider streams.

    `names` are what `_llm_interface` and `_stream` call it, in lower case. `urls` are regular expressions for
    `//HOST/PATH?QUERY` of the URLs that are of it: there is always a `?`, and no slash before it. Of all expressions
    of all providers the one with the longest match decides. `whole` is None for one whose whole responses have the
    shape of its events. `dialect` is how it takes conversations, None for that of the shared interface with its reader,
    or of the interface that is named as its spec is, if there is one.

    `is_shared` says that many servers offer it, each in a variant of its own: so its name, or its URL, is less than
    what the other says of such a variant.
    """

    names: tuple[str, ...]
    spec: StreamSpec
    urls: tuple[str, ...] = ()
    whole: WholeResponse | None = None
    dialect: Dialect | None = None
    is_shared: bool = False


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider, or a server that people run themselves.

    `trusted_endpoints` are patterns of URLs that connectors may call without more; `endpoint_patterns` of the settings
    says how they are matched. `model_parameters` are names of placeholders in its URLs that say which model is called,
    so that a caller may set them; `rendering/caller_parameters.py` has those that all share. `finish_words` are words
    of its own for why a stream ends, in lower case, with what they mean: its reader gives them to `finish_reason`, and
    a connector's `_stream` finds them here.
    """

    interfaces: tuple[Interface, ...] = ()
    trusted_endpoints: tuple[str, ...] = ()
    model_parameters: frozenset[str] = frozenset()
    finish_words: Mapping[str, str] = field(default_factory=dict)

"""The providers that are known, and what is asked of them: streams by name and URL, whole responses, trusted hosts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from pkgutil import walk_packages
from urllib.parse import SplitResult

from opensearch_ml_stream.connectors import providers
from opensearch_ml_stream.connectors.conversation.dialect import Dialect
from opensearch_ml_stream.connectors.decoding.contract import EventReader
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.provider import Interface, Provider, WholeResponse
from opensearch_ml_stream.connectors.stream_spec import StreamSpec
from opensearch_ml_stream.connectors.syntax.regex import Regex, compile_regex


@dataclass(frozen=True, slots=True)
class KnownProviders:
    """All providers as one.

    `presets` are the stream specs that `_llm_interface` and `_stream` can name, by name; `dialects` are those of the
    interfaces of these names.
    """

    providers: tuple[Provider, ...]
    presets: Mapping[str, StreamSpec]
    whole_responses: tuple[tuple[WholeResponse, Callable[[], EventReader]], ...]
    trusted_endpoints: tuple[str, ...]
    model_parameters: frozenset[str]
    finish_words: Mapping[str, str]
    dialects: Mapping[str, Dialect]
    _urls: tuple[tuple[Regex, Interface], ...]

    @classmethod
    def of(cls, known: Iterable[Provider]) -> "KnownProviders":
        """Return the providers as one. InvalidRequest if two have an interface of one name."""
        known = tuple(known)
        interfaces = [interface for provider in known for interface in provider.interfaces]
        return cls(
            providers=known,
            presets=_presets(interfaces),
            whole_responses=tuple((one.whole, one.spec.reader) for one in interfaces if one.whole is not None),
            trusted_endpoints=tuple(chain.from_iterable(provider.trusted_endpoints for provider in known)),
            model_parameters=frozenset().union(*(provider.model_parameters for provider in known)),
            finish_words={word: reason for provider in known for word, reason in provider.finish_words.items()},
            dialects={
                name: found for each in interfaces for name in each.names if (found := _dialect(each, interfaces))
            },
            _urls=tuple((compile_regex(url), interface) for interface in interfaces for url in interface.urls),
        )

    def with_others(self, others: Iterable[Provider]) -> "KnownProviders":
        """Return these and others. InvalidRequest if two have an interface of one name."""
        others = tuple(others)
        return KnownProviders.of((*self.providers, *others)) if others else self

    def find_by_url(self, url: SplitResult) -> Interface | None:
        """Return the interface of a URL by the expression with the longest match, None if no expression matches."""
        text = f"//{url.hostname or ''}{url.path.rstrip('/')}?{url.query}"
        matches = [(match, one) for regex, one in self._urls if (match := regex.search(text)) is not None]
        return max(matches, key=lambda found: len(found[0][0]), default=(None, None))[1]

    def dialect_of(self, interface: Interface) -> Dialect | None:
        """Return how an interface takes conversations, None where that is not known."""
        return interface.dialect or self.dialects.get(interface.spec.name)


def _presets(interfaces: Iterable[Interface]) -> dict[str, StreamSpec]:
    presets: dict[str, StreamSpec] = {}
    for interface in interfaces:
        for name in interface.names:
            if presets.setdefault(name, interface.spec) is not interface.spec:
                raise InvalidRequest(f"Two providers have an interface named [{name}]: rename one, or take one out")
    return presets


def _dialect(interface: Interface, interfaces: Iterable[Interface]) -> Dialect | None:
    """Return the dialect of an interface, or of the one that is named as its spec is."""
    named = (one.dialect for one in interfaces if interface.spec.name in one.names)
    return interface.dialect or next((found for found in named if found is not None), None)


def _find_providers() -> Iterator[Provider]:
    """Yield the PROVIDER of each module in the package `providers` that has one, by the modules' names."""
    for module in walk_packages(providers.__path__, f"{providers.__name__}."):
        provider = getattr(import_module(module.name), "PROVIDER", None)
        if isinstance(provider, Provider):
            yield provider


SHIPPED = KnownProviders.of(_find_providers())
"""The providers of this package."""

"""All known providers as one value: interfaces by name and URL, whole responses, trusted endpoints."""

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

    `interfaces` are those that `_llm_interface` and `_stream` can name, by name; `presets` and `dialects` are theirs.
    """

    providers: tuple[Provider, ...]
    interfaces: Mapping[str, Interface]
    presets: Mapping[str, StreamSpec]
    whole_responses: tuple[tuple[WholeResponse, Callable[[], EventReader]], ...]
    trusted_endpoints: tuple[str, ...]
    model_parameters: frozenset[str]
    finish_words: Mapping[str, str]
    dialects: Mapping[str, Dialect]
    _shared_dialects: Mapping[Callable[[], EventReader], Dialect]
    _urls: tuple[tuple[Regex, Interface], ...]

    @classmethod
    def of(cls, known: Iterable[Provider]) -> "KnownProviders":
        """Return the providers as one. InvalidRequest if two have an interface of one name."""
        known = tuple(known)
        interfaces = [interface for provider in known for interface in provider.interfaces]
        shared = {one.spec.reader: one.dialect for one in interfaces if one.is_shared and one.dialect is not None}
        own = {name: one.dialect for one in interfaces for name in one.names if one.dialect is not None}
        named = _named(interfaces)
        return cls(
            providers=known,
            interfaces=named,
            presets={name: interface.spec for name, interface in named.items()},
            whole_responses=tuple((one.whole, one.spec.reader) for one in interfaces if one.whole is not None),
            trusted_endpoints=tuple(chain.from_iterable(provider.trusted_endpoints for provider in known)),
            model_parameters=frozenset().union(*(provider.model_parameters for provider in known)),
            finish_words={word: reason for provider in known for word, reason in provider.finish_words.items()},
            dialects={
                name: dialect
                for name, one in named.items()
                if (dialect := own.get(name) or shared.get(one.spec.reader) or own.get(one.spec.name)) is not None
            },
            _shared_dialects=shared,
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
        spec = interface.spec
        return interface.dialect or self._shared_dialects.get(spec.reader) or self.dialects.get(spec.name)

    def are_of_one_provider(self, one: Interface, other: Interface) -> bool:
        """Return whether two interfaces are of the same provider."""
        return any({id(one), id(other)} <= set(map(id, provider.interfaces)) for provider in self.providers)


def _named(interfaces: Iterable[Interface]) -> dict[str, Interface]:
    named: dict[str, Interface] = {}
    for interface in interfaces:
        for name in interface.names:
            if named.setdefault(name, interface).spec is not interface.spec:
                raise InvalidRequest(f"Two providers have an interface named [{name}]: rename one, or take one out")
    return named


def _find_providers() -> Iterator[Provider]:
    """Yield the PROVIDER of each module in the package `providers` that has one, by the modules' names."""
    for module in walk_packages(providers.__path__, f"{providers.__name__}."):
        provider = getattr(import_module(module.name), "PROVIDER", None)
        if isinstance(provider, Provider):
            yield provider


SHIPPED = KnownProviders.of(_find_providers())
"""The providers of this package."""

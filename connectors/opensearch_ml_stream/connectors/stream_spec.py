"""Stream specs: how a provider's streaming is turned on, which framing it uses and what its events mean."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit, urlunsplit

from opensearch_ml_stream.connectors.decoding.contract import EventReader, Framing, StreamDecoder
from opensearch_ml_stream.connectors.decoding.decoder import Decoder, FastPathDecoder
from opensearch_ml_stream.connectors.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Enable:
    """The changes to a rendered request that turn the provider's streaming on, or off.

    `body` fields replace the template's fields of the same name, `inner_body` does so in objects of the body, by their
    name, and `drop` removes fields. `url` holds pairs of strings of the path (old, new), of which the first that
    applies is used; `is_only_url` says that a server with the second may have no first. `query` and `headers` are set,
    None removes them. `by_default` says that the provider streams unless its request says not to.
    """

    body: Mapping[str, Any] = field(default_factory=dict)
    inner_body: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    url: tuple[tuple[str, str], ...] = ()
    query: Mapping[str, str | None] = field(default_factory=dict)
    headers: Mapping[str, str | None] = field(default_factory=dict)
    by_default: bool = False
    is_only_url: bool = False

    def turned_off(self) -> "Enable":
        """Return the changes that turn the stream off in a request which turns it on as these do."""
        flags = {name: False for name, value in self.body.items() if value is True}
        return Enable(
            body=flags,
            drop=(*(name for name in self.drop if name not in flags), *(("stream_options",) if flags else ())),
            url=() if self.is_only_url else tuple({new: (new, old) for old, new in reversed(self.url)}.values())[::-1],
            query=dict.fromkeys(self.query),
            headers=dict.fromkeys(self.headers),
        )

    def change_head(self, url: str, headers: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
        """Return the URL and headers of a request with what turns the stream on in them."""
        if self.url:
            url = _enable_url(self.url, url)
        if self.query:
            parts = urlsplit(url)
            own = [pair for pair in parts.query.split("&") if pair and pair.partition("=")[0] not in self.query]
            added = urlencode({name: value for name, value in self.query.items() if value is not None})
            url = urlunsplit(parts._replace(query="&".join([*own, added] if added else own)))
        if self.headers:
            lower = {name.lower() for name in self.headers}
            headers = {
                **{name: value for name, value in headers.items() if name.lower() not in lower},
                **{name: value for name, value in self.headers.items() if value is not None},
            }
        return url, headers

    def change_body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return a request's body with what turns the stream on in it. InvalidRequest for an `inner_body` of no object.

        `rendering.streamed_body` does the same for the text of a body.
        """
        changed = dict(body)
        for name, values in self.inner_body.items():
            inner = changed.get(name, {})
            if not isinstance(inner, Mapping):
                raise InvalidRequest(f"The member [{name}] of the request body must be an object to be streamed")
            changed[name] = {**inner, **values}
        for name in self.drop:
            changed.pop(name, None)
        return {**changed, **self.body}


def _enable_url(replacements: tuple[tuple[str, str], ...], url: str) -> str:
    """Return the URL with the first replacement that applies made in its path, at the path's end if possible.

    A path that has the new string already stays as it is.
    """
    parts = urlsplit(url)
    path = parts.path
    if any(path.endswith(new) for _, new in replacements):
        return url
    for old, new in replacements:
        if path.endswith(old):
            return urlunsplit(parts._replace(path=path.removesuffix(old) + new))
    for old, new in replacements:
        before, separator, after = path.rpartition(old)
        if separator and new not in path:
            return urlunsplit(parts._replace(path=f"{before}{new}{after}"))
    return url


class Streaming(Protocol):
    """How streams are turned on and decoded: a provider's, by its StreamSpec, or those of what runs here."""

    @property
    def name(self) -> str:
        """Its name, for people."""
        ...

    @property
    def enable(self) -> Enable:
        """The changes to the request."""
        ...

    def decoder(self) -> StreamDecoder:
        """Return a new decoder for one stream."""
        ...


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """How one provider streams. `framing` and `reader` are called once per stream: both keep state.

    `has_fast_path` says that the framing is SSE and that an event which differs from the one before only in its text
    changes nothing else (usage, model, finish reason), so that `FastPathDecoder` may skip parsing it.
    """

    name: str
    enable: Enable
    framing: Callable[[], Framing]
    reader: Callable[[], EventReader]
    has_fast_path: bool = False
    decoder: Callable[[], Decoder | FastPathDecoder] = field(init=False, repr=False, compare=False)
    """Returns a new decoder for one stream."""

    def __post_init__(self) -> None:
        fast, plain = partial(FastPathDecoder, self.reader), partial(_plain_decoder, self.framing, self.reader)
        object.__setattr__(self, "decoder", fast if self.has_fast_path else plain)

    def decoder_with(self, make: Callable[[Framing, EventReader], Decoder]) -> Decoder | FastPathDecoder:
        """Return a new decoder for one stream, in which `make` makes the full decoder; see `FastPathDecoder`."""
        if self.has_fast_path:
            return FastPathDecoder(self.reader, make)
        return make(self.framing(), self.reader())


def _plain_decoder(framing: Callable[[], Framing], reader: Callable[[], EventReader]) -> Decoder:
    return Decoder(framing(), reader())

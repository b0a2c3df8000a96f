"""How one connector's provider streams: what turns it on, how it frames, what its events mean."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from opensearch_ml_stream.connectors.decoding.contract import Framing, Provider
from opensearch_ml_stream.connectors.decoding.decoder import Decoder
from opensearch_ml_stream.connectors.decoding.fast_path import FastPathDecoder


@dataclass(frozen=True, slots=True)
class Enable:
    """What is changed in a rendered request so that the provider streams.

    `body` fields replace the template's own of that name, `drop` removes fields; `url` pairs are (old, new) texts
    of the path, the first that applies is used; `query` and `headers` are set.
    """

    body: Mapping[str, Any] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    url: tuple[tuple[str, str], ...] = ()
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """`framing` and `provider` make the two halves of a stream's decoder, fresh for each stream.

    `has_fast_path`: the framing is SSE, and an event that differs from the one before in its text alone changes nothing
    else, so that such events need not be parsed (see `decoding.fast_path`).
    """

    name: str
    enable: Enable
    framing: Callable[[], Framing]
    provider: Callable[[], Provider]
    has_fast_path: bool = False

    def decoder(self) -> Decoder | FastPathDecoder:
        if self.has_fast_path:
            return FastPathDecoder(self.provider)
        return Decoder(self.framing(), self.provider())

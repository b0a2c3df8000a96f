"""Decoders of streams for clients that speak their provider's dialect, without a credential to look for."""

from opensearch_ml_stream.connectors.conversation.as_sent import AsSent
from opensearch_ml_stream.connectors.conversation.dialect import Dialect
from opensearch_ml_stream.connectors.decoding.contract import EventReader
from opensearch_ml_stream.connectors.decoding.decoder import Decoder
from opensearch_ml_stream.connectors.decoding.fast_path import FastPathDecoder
from opensearch_ml_stream.connectors.known_providers import SHIPPED


def as_sent(reader: EventReader, dialect: Dialect, *, wants_usage: bool = True) -> AsSent:
    """The reader's events as they were sent, as the dialect chooses them."""
    assert dialect.as_sent is not None
    return AsSent(reader, dialect.as_sent(wants_usage), bytes)


def decoder_as_sent(
    preset: str, dialect: Dialect | None = None, *, wants_usage: bool = True
) -> Decoder | FastPathDecoder:
    """A decoder of a preset's streams; `dialect` is its own unless it is given."""
    chosen = SHIPPED.dialects[preset] if dialect is None else dialect
    return SHIPPED.presets[preset].decoder_with(lambda reader: as_sent(reader, chosen, wants_usage=wants_usage))

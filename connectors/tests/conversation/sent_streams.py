"""Decoders of streams for clients that speak their provider's dialect, without a credential to look for."""

from functools import partial

from opensearch_ml_stream.connectors.conversation.as_sent import DecoderAsSent
from opensearch_ml_stream.connectors.conversation.dialect import Dialect
from opensearch_ml_stream.connectors.decoding.decoder import Decoder, FastPathDecoder
from opensearch_ml_stream.connectors.known_providers import SHIPPED


def decoder_as_sent(
    preset: str, dialect: Dialect | None = None, *, wants_usage: bool = True
) -> Decoder | FastPathDecoder:
    """A decoder of a preset's streams; `dialect` is its own unless it is given."""
    choose = (SHIPPED.dialects[preset] if dialect is None else dialect).as_sent
    assert choose is not None
    return SHIPPED.presets[preset].decoder_with(partial(DecoderAsSent, choose(wants_usage), bytes))

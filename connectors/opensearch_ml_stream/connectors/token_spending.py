"""What a provider call spends, in tokens and money: by the provider's own counts, or an estimate without them.

An estimate is made from sizes alone. A token is 4 bytes of a request or a text, and at least one token is in a chunk.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from opensearch_ml_stream.connectors.chunks import Usage
from opensearch_ml_stream.connectors.model_options import Prices

_BYTES_PER_TOKEN = 4
_MILLION = 1_000_000
_MAY_HOLD_DATA_BYTES = 16_384  # of a request; in a smaller one no data is looked for
_MIN_DATA_BYTES = 4_096
_DATA_TOKENS = 1_000  # of an image or another file in a request, whatever its size


@dataclass(slots=True)  # not frozen, which would take three times as long to make: every call makes some
class Amount:
    """So many tokens, and so much money in the currency of the prices; a value that nobody changes."""

    tokens: float = 0.0
    cost: float = 0.0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.tokens + other.tokens, self.cost + other.cost)

    def __sub__(self, other: "Amount") -> "Amount":
        return Amount(self.tokens - other.tokens, self.cost - other.cost)


class TokenCount(NamedTuple):
    """The tokens of one call: those of reasoning are among the `output`.

    Among the `input` are those `cached`, read from a cache of prompts, and others `cache_write`, written to it.
    """

    input: int
    output: int = 0
    cached: int = 0
    cache_write: int = 0
    is_estimated: bool = False

    def amount(self, prices: Prices | None) -> Amount:
        """Return what the tokens cost; nothing without prices."""
        tokens = self.input + self.output
        if prices is None:
            return Amount(tokens)
        cached_price = prices.input if prices.cached_input is None else prices.cached_input
        write_price = prices.input if prices.cache_write is None else prices.cache_write
        other = self.input - self.cached - self.cache_write
        cost = other * prices.input + self.cached * cached_price + self.cache_write * write_price
        cost += self.output * prices.output
        return Amount(tokens, cost / _MILLION)


def count_tokens(usage: Usage | None, estimated_input: int, estimated_output: int) -> TokenCount:
    """Return the tokens that the provider counted; the estimate stands in for what it does not say.

    A total without its parts is the input, as of embeddings.
    """
    usage = usage or Usage()
    counted_input, counted_output, total = usage.input_tokens, usage.output_tokens, usage.total_tokens
    if total is not None:
        if counted_input is None:
            counted_input = max(total - (counted_output or 0), 0)
        if counted_output is None:
            counted_output = max(total - counted_input, 0)
    tokens = estimated_input if counted_input is None else counted_input
    cached = min(usage.cached_tokens or 0, tokens)
    return TokenCount(
        tokens,
        estimated_output if counted_output is None else counted_output,
        cached,
        min(usage.cache_write_tokens or 0, tokens - cached),
        is_estimated=counted_input is None or counted_output is None,
    )


def estimate_request_tokens(body: bytes) -> int:
    """Return about how many tokens are in a rendered request.

    A long JSON string of ASCII without a space in it is an image or another file, for which no provider counts its
    bytes.
    """
    size = len(body)
    if size > _MAY_HOLD_DATA_BYTES:
        for string in _long_strings(body):
            if b" " not in string and string.isascii():
                size -= len(string) - _DATA_TOKENS * _BYTES_PER_TOKEN
    return estimate_text_tokens(size)


def _long_strings(body: bytes) -> Iterator[bytes]:
    """Yield what lies between quotes that are more than _MIN_DATA_BYTES apart, without a look at every quote."""
    end = 0
    while (inside := end + _MIN_DATA_BYTES) < len(body):
        start = max(end, body.rfind(b'"', end, inside) + 1)
        end = body.find(b'"', inside)
        if end < 0:
            end = len(body)
        if end - start > _MIN_DATA_BYTES:
            yield body[start:end]


def estimate_text_tokens(size: int) -> int:
    """Return about how many tokens are in so many bytes."""
    return -(-size // _BYTES_PER_TOKEN)

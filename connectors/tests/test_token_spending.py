"""What a call spends: as its provider counted it, and by estimates."""

import pytest

from opensearch_ml_stream.connectors.chunks import Usage
from opensearch_ml_stream.connectors.model_options import Prices
from opensearch_ml_stream.connectors.token_spending import (
    Amount,
    TokenCount,
    count_tokens,
    estimate_request_tokens,
    estimate_text_tokens,
)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage(5, 7), TokenCount(5, 7)),
        (Usage(5, 7, 12, cached_tokens=4, reasoning_tokens=6), TokenCount(5, 7, 4)),
        (Usage(5, 0), TokenCount(5, 0)),
        (Usage(None, None, 9), TokenCount(9, 0)),
        (Usage(5, None, 12), TokenCount(5, 7)),
        (Usage(None, 7, 12), TokenCount(5, 7)),
        (Usage(None, 7, 3), TokenCount(0, 7)),
        (Usage(5, 7, cached_tokens=6), TokenCount(5, 7, 5)),
        (Usage(5, 7, cached_tokens=2, cache_write_tokens=1), TokenCount(5, 7, 2, 1)),
        (Usage(5, 7, cached_tokens=2, cache_write_tokens=9), TokenCount(5, 7, 2, 3)),
    ],
)
def test_what_the_provider_counts_is_taken_and_its_total_gives_what_it_leaves_out(
    usage: Usage, expected: TokenCount
) -> None:
    assert count_tokens(usage, 100, 200) == expected


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, TokenCount(100, 200, is_estimated=True)),
        (Usage(), TokenCount(100, 200, is_estimated=True)),
        (Usage(5), TokenCount(5, 200, is_estimated=True)),
        (Usage(None, 7), TokenCount(100, 7, is_estimated=True)),
    ],
)
def test_an_estimate_stands_in_for_what_is_not_counted(usage: Usage | None, expected: TokenCount) -> None:
    assert count_tokens(usage, 100, 200) == expected


def test_a_million_tokens_cost_their_price_and_cached_input_its_own() -> None:
    tokens = TokenCount(3_000_000, 500_000, cached=1_000_000)
    assert tokens.amount(Prices(2.0, 10.0, 0.5)) == Amount(3_500_000, 2 * 2.0 + 0.5 + 5.0)
    assert tokens.amount(Prices(2.0, 10.0)) == Amount(3_500_000, 3 * 2.0 + 5.0)
    assert tokens.amount(Prices(2.0, 10.0, 0.0)) == Amount(3_500_000, 2 * 2.0 + 5.0)


def test_input_that_is_written_to_a_cache_has_its_own_price_or_that_of_input() -> None:
    tokens = TokenCount(4_000_000, 500_000, cached=1_000_000, cache_write=1_000_000)
    assert tokens.amount(Prices(2.0, 10.0, 0.5, 2.5)) == Amount(4_500_000, 2 * 2.0 + 0.5 + 2.5 + 5.0)
    assert tokens.amount(Prices(2.0, 10.0, 0.5)) == Amount(4_500_000, 3 * 2.0 + 0.5 + 5.0)
    assert tokens.amount(Prices(2.0, 10.0, cache_write=0.0)) == Amount(4_500_000, 3 * 2.0 + 5.0)


def test_without_prices_tokens_are_counted_and_cost_nothing() -> None:
    assert TokenCount(3, 4).amount(None) == Amount(7, 0)


def test_amounts_are_added_and_subtracted_by_part() -> None:
    assert Amount(3, 0.5) + Amount(4, 0.25) == Amount(7, 0.75)
    assert Amount(3, 0.5) - Amount(4, 0.25) == Amount(-1, 0.25)


def test_four_bytes_are_a_token_and_a_part_of_them_is_one_too() -> None:
    assert [estimate_text_tokens(size) for size in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert estimate_request_tokens(b'{"input":"hello"}') == 5


def test_an_image_in_a_request_counts_as_a_thousand_tokens_whatever_its_size() -> None:
    text = b'{"text":"what is this?","image":"'
    for size in (50_000, 500_000):
        assert estimate_request_tokens(text + b"A" * size + b'"}') == 1000 + 9


@pytest.mark.parametrize("long", [b"two words " * 5_000, "ä".encode() * 25_000, b"A" * 4_096])
def test_a_long_text_is_not_taken_for_an_image(long: bytes) -> None:
    body = b'{"text":"' + long + b'","more":"' + b"some text " * 2_000 + b'"}'
    assert estimate_request_tokens(body) == -(-len(body) // 4)

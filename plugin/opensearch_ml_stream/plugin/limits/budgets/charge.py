"""One call of a provider as the budgets of its model see it: reserved before, paid when it has ended."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.sidecar_settings import Budget, Prices
from opensearch_ml_stream.connectors.spending.token_spending import Amount, TokenCount, count_tokens
from opensearch_ml_stream.plugin.limits.budgets.spending_files import Counter, Spending

_COST_DIGITS = 9  # of money: a token of the cheapest models costs some 10^-8

Settle = Callable[[Counter, Spending, Amount], Spending]
"""Adds to a counter's spending, which was as given before the call, and returns it."""


class OpenStream(Protocol):
    """The stream that the provider responds with."""

    @property
    def chunks(self) -> int:
        """How many chunks have come so far."""
        ...

    @property
    def outcome(self) -> Ending | MLStreamError | None:
        """How it has ended."""
        ...


@dataclass(frozen=True, slots=True)
class BudgetCounter:
    """A budget and what counts its spending."""

    budget: Budget
    counter: Counter

    def left(self, spending: Amount) -> float:
        """Return what is left of it; 0 or less if it is spent."""
        if self.budget.tokens is not None:
            return self.budget.tokens - spending.tokens
        return round((self.budget.cost or 0.0) - spending.cost, _COST_DIGITS)


class Charge:
    """A call, whose `estimated_input` tokens are reserved; it is paid at the end of the `with` block at the latest.

    What the provider counts is paid. An error before the response has begun costs nothing. A call that is broken off,
    by the client or the connection, costs what was estimated: the input, and a token for each chunk.

    `stream` is the provider's, once there is one. `spendings` are those of its counters as last seen, with what is
    `reserved` of each.
    """

    __slots__ = (
        "_budgets", "_count_cost", "_prices", "_settle", "_tokens", "estimated_input", "reserved", "spendings",
        "stream",
    )  # fmt: skip

    def __init__(
        self,
        budgets: Sequence[BudgetCounter],
        prices: Prices | None,
        estimated_input: int,
        settle: Settle,
        count_cost: Callable[[float], None],
    ) -> None:
        self._budgets = budgets
        self._prices = prices
        self.estimated_input = estimated_input
        self._settle = settle
        self._count_cost = count_cost
        self.reserved = TokenCount(estimated_input).amount(prices)
        self.spendings: dict[Counter, Spending] = {}
        self._tokens: TokenCount | None = None  # None before they are paid
        self.stream: OpenStream | None = None

    def __enter__(self) -> "Charge":
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        stream, self.stream = self.stream, None
        if stream is not None:
            self.pay_stream(stream.outcome, stream.chunks)
        elif isinstance(error, MLStreamError):
            self.pay(TokenCount(0))
        else:
            self.pay(TokenCount(self.estimated_input, is_estimated=True))

    def spent_before(self) -> list[BudgetCounter]:
        """Return the budgets that were spent without this call."""
        before = {counter: spending.total - self.reserved for counter, spending in self.spendings.items()}
        return [counted for counted in self._budgets if counted.left(before[counted.counter]) <= 0]

    def pay_stream(self, outcome: Ending | MLStreamError | None, chunks: int) -> None:
        """Pay a stream that has ended, None for one that the client has left."""
        if isinstance(outcome, MLStreamError) and not chunks:
            self.pay(TokenCount(0))
        else:
            usage = outcome.usage if isinstance(outcome, Ending) else None
            self.pay(count_tokens(usage, self.estimated_input, chunks))

    def pay(self, tokens: TokenCount) -> None:
        """Pay these tokens, the reserved ones among them; only once."""
        if self._tokens is not None:
            return
        self._tokens = tokens
        amount = tokens.amount(self._prices)
        if amount.cost:
            self._count_cost(amount.cost)
        more = amount - self.reserved
        for counter, spending in self.spendings.items():
            self.spendings[counter] = self._settle(counter, spending, more)

    def terminal_fields(self) -> dict[str, Any]:
        """Return what the caller is told of a call that was paid: what it cost, and what is left of the budgets."""
        if not self._budgets or self._tokens is None:
            return {}
        amount = self._tokens.amount(self._prices)
        spent: dict[str, Any] = {"tokens": int(amount.tokens)}
        if self._prices is not None:
            spent["cost"] = round(amount.cost, _COST_DIGITS)
        if self._tokens.is_estimated:
            spent["estimated"] = True
        return {"spent": spent, "budgets": [_told(counted, self.spendings) for counted in self._budgets]}


def _told(counted: BudgetCounter, spendings: Mapping[Counter, Spending]) -> dict[str, Any]:
    budget, spending = counted.budget, spendings[counted.counter]
    left = max(counted.left(spending.total), 0)
    limit = {"cost": budget.cost} if budget.tokens is None else {"tokens": int(budget.tokens)}
    return {
        "per": budget.per,
        "window": budget.window,
        **limit,
        "left": left if budget.tokens is None else int(left),
        "renews_at": spending.window_end,
        **({"exceeded": True} if left == 0 else {}),
    }

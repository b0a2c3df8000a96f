"""One call of a provider as the budgets of its model see it: reserved before, paid when it has ended."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.model_options import Budget, Prices
from opensearch_ml_stream.connectors.spending.token_spending import Amount, TokenCount, count_tokens
from opensearch_ml_stream.plugin.limits.budgets.spending_table import Counter, Spending

_COST_DIGITS = 9  # of money: a token of the cheapest models costs some 10^-8

Settle = Callable[[Sequence[Counter], Sequence[Spending], Amount], Sequence[Spending]]
"""Adds to the counters' spendings, which were as given before the call, and returns them."""


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
class CountedBudget:
    """A budget, the place of its counter in the plan, and what callers are `told` of it in any case."""

    budget: Budget
    place: int
    told: Mapping[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        budget = self.budget
        limit = {"cost": budget.cost} if budget.tokens is None else {"tokens": int(budget.tokens)}
        object.__setattr__(self, "told", {"per": budget.per, "window": budget.window, **limit})

    def left(self, tokens: float, cost: float) -> float:
        """Return what is left of it after this spending; 0 or less if it is spent."""
        if self.budget.tokens is not None:
            return self.budget.tokens - tokens
        return round((self.budget.cost or 0.0) - cost, _COST_DIGITS)


@dataclass(frozen=True, slots=True)
class BudgetPlan:
    """The budgets of a model as they are for one user, and what counts them, each once."""

    budgets: tuple[CountedBudget, ...]
    counters: tuple[Counter, ...]


class Charge:
    """A call, whose `estimated_input` tokens are reserved; it is paid at the end of the `with` block at the latest.

    What the provider counts is paid. An error before the response has begun costs nothing. A call that is broken off,
    by the client or the connection, costs what was estimated: the input, and a token for each chunk.

    `stream` is the provider's, once there is one. `spendings` are those of the plan's counters as last seen, with what
    is `reserved` of each; none before that.
    """

    __slots__ = (
        "_amount", "_count_cost", "_is_estimated", "_prices", "_settle", "estimated_input", "plan", "reserved",
        "spendings", "stream",
    )  # fmt: skip

    def __init__(
        self,
        plan: BudgetPlan,
        prices: Prices | None,
        estimated_input: int,
        settle: Settle,
        count_cost: Callable[[float], None],
    ) -> None:
        self.plan = plan
        self._prices = prices
        self.estimated_input = estimated_input
        self._settle = settle
        self._count_cost = count_cost
        self.reserved = TokenCount(estimated_input).amount(prices)
        self.spendings: Sequence[Spending] = ()
        self._amount: Amount | None = None  # None before it is paid
        self._is_estimated = False
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

    def spent_before(self) -> list[CountedBudget]:
        """Return the budgets that were spent without this call."""
        spendings, tokens, cost = self.spendings, self.reserved.tokens, self.reserved.cost
        return [
            counted
            for counted in self.plan.budgets
            if counted.left((spending := spendings[counted.place]).tokens - tokens, spending.cost - cost) <= 0
        ]

    def pay_stream(self, outcome: Ending | MLStreamError | None, chunks: int) -> None:
        """Pay a stream that has ended, None for one that the client has left; only once."""
        if self._amount is not None:
            return
        if isinstance(outcome, MLStreamError) and not chunks:
            self.pay(TokenCount(0))
        else:
            usage = outcome.usage if isinstance(outcome, Ending) else None
            self.pay(count_tokens(usage, self.estimated_input, chunks))

    def pay(self, tokens: TokenCount) -> None:
        """Pay these tokens, the reserved ones among them; only once."""
        if self._amount is not None:
            return
        self._amount = amount = tokens.amount(self._prices)
        self._is_estimated = tokens.is_estimated
        if amount.cost:
            self._count_cost(amount.cost)
        if self.spendings:
            self.spendings = self._settle(self.plan.counters, self.spendings, amount - self.reserved)

    def terminal_fields(self) -> dict[str, Any]:
        """Return what the caller is told of a call that was paid: what it cost, and what is left of the budgets."""
        amount = self._amount
        if not self.spendings or amount is None:
            return {}
        spent: dict[str, Any] = {"tokens": int(amount.tokens)}
        if self._prices is not None:
            spent["cost"] = round(amount.cost, _COST_DIGITS)
        if self._is_estimated:
            spent["estimated"] = True
        return {"spent": spent, "budgets": [_told(each, self.spendings[each.place]) for each in self.plan.budgets]}


def _told(counted: CountedBudget, spending: Spending) -> dict[str, Any]:
    left = max(counted.left(spending.tokens, spending.cost), 0)
    told = {
        **counted.told,
        "left": left if counted.budget.tokens is None else int(left),
        "renews_at": spending.window_end,
    }
    if left == 0:
        told["exceeded"] = True
    return told

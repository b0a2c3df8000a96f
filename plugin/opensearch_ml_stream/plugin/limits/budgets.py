"""Budgets of models: each call is charged to them, and refused when a hard one is spent.

A call is refused when the spending has reached the limit, so a call that begins within a budget may end above it. The
spending includes the input of calls in flight, estimated from their requests.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any, Protocol

from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.errors import MLStreamError, Throttled, Unavailable
from opensearch_ml_stream.connectors.model_options import Budget, Prices, SidecarSettings
from opensearch_ml_stream.connectors.token_spending import (
    Amount,
    TokenCount,
    count_tokens,
    estimate_request_tokens,
)
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.limits.replica_leases import server_id
from opensearch_ml_stream.plugin.limits.shared_spending import SharedSpending, exchanging_spending
from opensearch_ml_stream.plugin.limits.spending_table import Counter, Spending, SpendingTable
from opensearch_ml_stream.plugin.store import Store

_COST_DIGITS = 9  # of money: a token of the cheapest models costs some 10^-8

Settle = Callable[[Sequence[Counter], Sequence[Spending], Amount], Sequence[Spending]]
"""Adds to the counters' spendings, which were as given before the call, and returns them."""
_MAX_RETRY_AFTER_SECONDS = 86_400  # a window may be a year
_MAX_PLANS = 1024


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
    """A budget, the position of its counter in the plan, and the fields that every response shows of it (`told`)."""

    budget: Budget
    place: int
    told: Mapping[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        budget = self.budget
        limit = {"cost": budget.cost} if budget.tokens is None else {"tokens": int(budget.tokens)}
        object.__setattr__(self, "told", {"per": budget.per, "window": budget.window, **limit})

    def left(self, tokens: float, cost: float) -> float:
        """Return what is left of the budget after this spending; 0 or less if it is spent."""
        if self.budget.tokens is not None:
            return self.budget.tokens - tokens
        return round((self.budget.cost or 0.0) - cost, _COST_DIGITS)


@dataclass(frozen=True, slots=True)
class BudgetPlan:
    """The budgets of a model for one user, and their counters without duplicates."""

    budgets: tuple[CountedBudget, ...]
    counters: tuple[Counter, ...]


class Charge:
    """One call's charge: `estimated_input` tokens are reserved, and paid at the end of the `with` block at the latest.

    The provider's own count is paid. An error before the response has begun costs nothing. A call that the client or
    the connection breaks off costs an estimate: its input, and a token for each chunk. `stream` is the provider's, once
    there is one. `spendings` are the last known spendings of the plan's counters, including what is `reserved` of each;
    it is empty before that.
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
        """Return the budgets that were already spent before this call."""
        spendings, tokens, cost = self.spendings, self.reserved.tokens, self.reserved.cost
        return [
            counted
            for counted in self.plan.budgets
            if counted.left((spending := spendings[counted.place]).tokens - tokens, spending.cost - cost) <= 0
        ]

    def pay_stream(self, outcome: Ending | MLStreamError | None, chunks: int) -> None:
        """Pay a stream that has ended; `outcome` is None if the client disconnected. Only the first payment counts."""
        if self._amount is not None:
            return
        if isinstance(outcome, MLStreamError) and not chunks:
            self.pay(TokenCount(0))
        else:
            usage = outcome.usage if isinstance(outcome, Ending) else None
            self.pay(count_tokens(usage, self.estimated_input, chunks))

    def pay(self, tokens: TokenCount) -> None:
        """Pay these tokens, which include the reserved ones. Only the first payment counts."""
        if self._amount is not None:
            return
        self._amount = amount = tokens.amount(self._prices)
        self._is_estimated = tokens.is_estimated
        if amount.cost:
            self._count_cost(amount.cost)
        if self.spendings:
            self.spendings = self._settle(self.plan.counters, self.spendings, amount - self.reserved)

    def terminal_fields(self) -> dict[str, Any]:
        """Return the fields of the terminal object for a paid call: its cost, and what is left of the budgets."""
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


class Budgets:
    """The budgets of all models, over the spending of all servers."""

    def __init__(self, shared: SharedSpending, count_cost: Callable[[str, float], None], clock: Clock) -> None:
        self._shared = shared
        self._count_cost = count_cost
        self._clock = clock
        self._plans: dict[tuple[str, str], tuple[Sequence[Budget], BudgetPlan]] = {}  # by model and user

    async def charge(self, model_id: str, settings: SidecarSettings, user: str, request_body: bytes) -> Charge:
        """Reserve the input of a call that is about to be made; to be entered with `with`.

        Throttled (429, `retry_after` in seconds) if a hard budget is spent. Unavailable if the spending cannot be
        counted: nothing that has a budget goes on uncounted.
        """
        charge = Charge(
            self._plan(model_id, user, settings.budgets),
            settings.prices,
            estimate_request_tokens(request_body),
            self._shared.settle,
            partial(self._count_cost, model_id),
        )
        if charge.plan.counters:
            try:
                await self._reserve(charge)
                self._check(charge)
            except BaseException:
                charge.pay(TokenCount(0))
                raise
        return charge

    async def check(self, model_id: str, settings: SidecarSettings, user: str) -> None:
        """Raise Throttled as `charge` does, without counting a call."""
        charge = await self.charge(model_id, settings, user, b"")
        charge.pay(TokenCount(0))

    def _plan(self, model_id: str, user: str, budgets: Sequence[Budget]) -> BudgetPlan:
        """Return the plan for these budgets; recent ones are cached, as most calls are of the same models and users."""
        known = self._plans.get((model_id, user))
        if known is not None and known[0] is budgets:
            return known[1]
        if len(self._plans) == _MAX_PLANS:
            self._plans.clear()
        plan = _new_plan(model_id, user, budgets)
        self._plans[model_id, user] = budgets, plan
        return plan

    async def _reserve(self, charge: Charge) -> None:
        shared, counters = self._shared, charge.plan.counters
        try:
            charge.spendings = spendings = shared.add(counters, charge.reserved)
            for place in shared.stale(spendings):
                read = await shared.read(counters[place], spendings[place])
                if read.window_end == spendings[place].window_end:  # else the call is reserved in the one before
                    spendings[place] = read
        except OSError as error:
            raise Unavailable(
                f"The model's budgets cannot be counted ({error.strerror}); check that the disk of temporary files is "
                "not full"
            ) from error

    def _check(self, charge: Charge) -> None:
        spent = [counted for counted in charge.spent_before() if counted.budget.enforcement == "hard"]
        if not spent:
            return
        last = max(spent, key=lambda counted: charge.spendings[counted.place].window_end)
        raise self._refusal(last.budget, charge.plan.counters[last.place], charge.spendings[last.place])

    def _refusal(self, budget: Budget, counter: Counter, spending: Spending) -> MLStreamError:
        whose = f"model [{counter.model_id}]"
        if counter.user is not None:
            who = f"user [{counter.user}]" if counter.user else "callers who do not log in"
            whose = f"{who} for {whose}"
        amount = f"a cost of {budget.cost:.9g}" if budget.tokens is None else f"{budget.tokens:.0f} tokens"
        renews = datetime.fromtimestamp(spending.window_end / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        wait = ceil((spending.window_end - self._clock()) / 1000)
        return Throttled(
            f"The budget of {whose} is spent: {amount} in {budget.window}. It renews at {renews}",
            type="budget_exceeded_exception",
            retry_after=str(min(max(wait, 1), _MAX_RETRY_AFTER_SECONDS)),
            limit=f"{budget.per}_budget",
        )


@asynccontextmanager
async def open_budgets(
    runtime: Path,
    store: Store,
    count_cost: Callable[[str, float], None],
    clock: Clock,
    background: BackgroundTasks,
    *,
    is_shared: bool = True,
) -> AsyncIterator[Budgets]:
    """Open the budgets of a server in the folder `runtime` that its workers share, if it has more than one.

    `count_cost` gets the model's id and the money of each call.
    """
    with closing(SpendingTable(runtime / "spending", is_shared=is_shared)) as table:
        shared = SharedSpending(table, store, clock, server_id(runtime))
        async with exchanging_spending(shared, background):
            yield Budgets(shared, count_cost, clock)


def _new_plan(model_id: str, user: str, budgets: Sequence[Budget]) -> BudgetPlan:
    """Return the plan for a user's calls of a model; budgets of one window share a counter."""
    counters = [Counter(model_id, user if each.per == "user" else None, each.window_seconds) for each in budgets]
    apart = tuple(dict.fromkeys(counters))
    counted = [CountedBudget(*pair) for pair in zip(budgets, map(apart.index, counters), strict=True)]
    return BudgetPlan(tuple(counted), apart)

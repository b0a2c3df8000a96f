"""Budgets of models: refuses calls when a hard one is spent, and counts what each call spends.

A call is refused when the spending so far is at the limit or beyond it, so a call that begins within a budget may end
above it. In the spending is the input of calls in flight, estimated from their requests.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from functools import partial
from math import ceil
from pathlib import Path

from opensearch_ml_stream.connectors.errors import MLStreamError, Throttled, Unavailable
from opensearch_ml_stream.connectors.model_options import Budget, SidecarSettings
from opensearch_ml_stream.connectors.spending.token_spending import TokenCount, estimate_request_tokens
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.limits.budgets.charge import BudgetPlan, Charge, CountedBudget
from opensearch_ml_stream.plugin.limits.budgets.shared_spending import SharedSpending, exchanging_spending
from opensearch_ml_stream.plugin.limits.budgets.spending_table import Counter, Spending, SpendingTable
from opensearch_ml_stream.plugin.limits.server_id import server_id
from opensearch_ml_stream.plugin.store import Store

_MAX_RETRY_AFTER_SECONDS = 86_400  # a window may be a year
_MAX_PLANS = 1024


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
        """Raise Throttled as `charge` does, for what is not counted."""
        charge = await self.charge(model_id, settings, user, b"")
        charge.pay(TokenCount(0))

    def _plan(self, model_id: str, user: str, budgets: Sequence[Budget]) -> BudgetPlan:
        """Return the plan for these budgets; the last ones are kept, as most calls are of the same models and users."""
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
    """Return the budgets of a user's calls of a model; those of one window are counted together."""
    counters = [Counter(model_id, user if each.per == "user" else None, each.window_seconds) for each in budgets]
    apart = tuple(dict.fromkeys(counters))
    counted = [CountedBudget(*pair) for pair in zip(budgets, map(apart.index, counters), strict=True)]
    return BudgetPlan(tuple(counted), apart)

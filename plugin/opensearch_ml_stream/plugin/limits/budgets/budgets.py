"""Budgets of models: refuses calls when a hard one is spent, and counts what each call spends.

A call is refused when the spending so far is at the limit or beyond it, so a call that begins within a budget may end
above it. In the spending is the input of calls in flight, estimated from their requests.
"""

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from math import ceil
from pathlib import Path

from opensearch_ml_stream.connectors.errors import MLStreamError, Throttled, Unavailable
from opensearch_ml_stream.connectors.sidecar_settings import SidecarSettings
from opensearch_ml_stream.connectors.spending.token_spending import TokenCount, estimate_request_tokens
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.limits.budgets.charge import BudgetCounter, Charge
from opensearch_ml_stream.plugin.limits.budgets.shared_spending import SharedSpending, exchanging_spending
from opensearch_ml_stream.plugin.limits.budgets.spending_files import Counter, Spending, SpendingFiles
from opensearch_ml_stream.plugin.locked_file import locked
from opensearch_ml_stream.plugin.store import Store

_MAX_RETRY_AFTER_SECONDS = 86_400  # a window may be a year


class Budgets:
    """The budgets of all models, over the spending of all servers."""

    def __init__(self, shared: SharedSpending, count_cost: Callable[[str, float], None], clock: Clock) -> None:
        self._shared = shared
        self._count_cost = count_cost
        self._clock = clock

    async def charge(self, model_id: str, settings: SidecarSettings, user: str, request_body: bytes) -> Charge:
        """Reserve the input of a call that is about to be made; to be entered with `with`.

        Throttled (429, `retry_after` in seconds) if a hard budget is spent. Unavailable if the spending cannot be
        counted: nothing that has a budget goes on uncounted.
        """
        counted = [
            BudgetCounter(budget, Counter(model_id, user if budget.per == "user" else None, budget.window_seconds))
            for budget in settings.budgets
        ]
        charge = Charge(
            counted,
            settings.prices,
            estimate_request_tokens(request_body),
            self._shared.settle,
            partial(self._count_cost, model_id),
        )
        try:
            await self._reserve(charge, {each.counter for each in counted})
            self._check(charge)
        except BaseException:
            charge.pay(TokenCount(0))
            raise
        return charge

    async def check(self, model_id: str, settings: SidecarSettings, user: str) -> None:
        """Raise Throttled as `charge` does, for what is not counted."""
        charge = await self.charge(model_id, settings, user, b"")
        charge.pay(TokenCount(0))

    async def _reserve(self, charge: Charge, counters: set[Counter]) -> None:
        reserved, spendings = charge.reserved, charge.spendings
        try:
            for counter in counters:
                spendings[counter] = self._shared.add(counter, reserved)
            for counter in counters:
                if self._shared.is_stale(spendings[counter]):
                    read = await self._shared.read(counter, spendings[counter])
                    if read.window_end == spendings[counter].window_end:  # else the call is reserved in the one before
                        spendings[counter] = read
        except OSError as error:
            raise Unavailable(
                f"The model's budgets cannot be counted ({error.strerror}); check that the disk of temporary files is "
                "not full"
            ) from error

    def _check(self, charge: Charge) -> None:
        spent = [counted for counted in charge.spent_before() if counted.budget.enforcement == "hard"]
        if not spent:
            return
        last = max(spent, key=lambda counted: charge.spendings[counted.counter].window_end)
        raise self._refusal(last, charge.spendings[last.counter])

    def _refusal(self, counted: BudgetCounter, spending: Spending) -> MLStreamError:
        budget, counter = counted.budget, counted.counter
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
    runtime: Path, store: Store, count_cost: Callable[[str, float], None], clock: Clock
) -> AsyncIterator[Budgets]:
    """Open the budgets of a server in the folder `runtime` that its workers share.

    `count_cost` gets the model's id and the money of each call.
    """
    directory = runtime / "spending"
    directory.mkdir(mode=0o700, exist_ok=True)
    shared = SharedSpending(SpendingFiles(directory), store, clock, _server_name(runtime / "spending-server"))
    async with exchanging_spending(shared):
        yield Budgets(shared, count_cost, clock)


def _server_name(path: Path) -> str:
    """Return the name of this server, the same in all workers: that in the file, which the first one writes."""
    with locked(path):
        name = path.read_text("ascii")
        if not name:
            name = secrets.token_hex(8)
            path.write_text(name, "ascii")
    return name

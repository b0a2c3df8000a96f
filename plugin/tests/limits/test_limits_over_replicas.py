"""How often several hosts together let a limited model be called, in virtual time: what docs/rate-limits.md promises.

Every host is asked as often as it can be; the sums are compared with the limit's rate and the bound of each event.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.errors import MLStreamError, Throttled
from opensearch_ml_stream.plugin.limits.rate_limits import RateLimit, RateLimits
from opensearch_ml_stream.plugin.limits.replica_leases import EXPIRED_AFTER, RENEW_SECONDS, RETRY_SECONDS, Lease
from tests.limits.flaky_store import FlakyStore
from tests.limits.virtual_clock import Clock

STEP = 0.125
RATE = 10.0  # calls a second
LIMIT = RateLimit(RATE * 60, 60)
EXPIRY = (EXPIRED_AFTER + 1) * RENEW_SECONDS


class Host:
    """A server on a host of its own, which is asked all the time."""

    def __init__(self, folder: Path, name: str, clock: Clock) -> None:
        (folder / name).mkdir()
        self.store = FlakyStore(str(folder / "store.db"))
        self.lease = Lease(self.store, lambda: 0, name)
        self.count = 1
        self.allowed = 0
        self.runs = True
        self._clock = clock
        self._renews_at = clock.now
        self._limits = RateLimits(folder / name, lambda: self.count, clock)

    async def step(self) -> None:
        if not self.runs:
            return
        if self._clock.now >= self._renews_at:
            try:
                self.count = await self.lease.renew()
                self._renews_at += RENEW_SECONDS
            except MLStreamError:
                self._renews_at += RETRY_SECONDS
        while self._is_allowed():
            self.allowed += 1

    def _is_allowed(self) -> bool:
        try:
            self._limits.acquire("m", LIMIT)
        except Throttled:
            return False
        return True

    async def aclose(self) -> None:
        await self.store.close()


class Hosts:
    """Hosts that share a store and a limit; `start` adds one."""

    def __init__(self, folder: Path, clock: Clock, stack: AsyncExitStack) -> None:
        self._folder = folder
        self._clock = clock
        self._stack = stack
        self.all: list[Host] = []

    async def start(self) -> Host:
        host = Host(self._folder, str(len(self.all)), self._clock)
        self.all.append(await self._stack.enter_async_context(aclosing(host)))
        await host.step()
        return host

    async def allowed_in(self, seconds: float) -> int:
        """How many calls all hosts together allow in that time."""
        before = sum(host.allowed for host in self.all)
        for _ in range(round(seconds / STEP)):
            self._clock.now += STEP
            for host in self.all:
                await host.step()
        return sum(host.allowed for host in self.all) - before


@pytest.fixture
async def hosts(tmp_path: Path, clock: Clock) -> AsyncIterator[Hosts]:
    async with AsyncExitStack() as stack:
        yield Hosts(tmp_path, clock, stack)


async def drained(hosts: Hosts, number: int) -> list[Host]:
    """So many hosts, all of which know of each other and have no burst left."""
    for _ in range(number):
        await hosts.start()
    await hosts.allowed_in(2 * RENEW_SECONDS)
    assert [host.count for host in hosts.all] == [number] * number
    return hosts.all


async def test_hosts_that_know_of_each_other_keep_to_the_limit_together(hosts: Hosts) -> None:
    await drained(hosts, 3)
    assert RATE * 30 - 3 <= await hosts.allowed_in(30) <= RATE * 30 + 3


async def test_bursts_together_are_the_limit(hosts: Hosts, clock: Clock) -> None:
    await drained(hosts, 3)
    clock.now += 3600  # all buckets fill up
    seconds = 30
    assert await hosts.allowed_in(seconds) <= RATE * seconds + LIMIT.limit + 3


async def test_a_join_costs_one_part_of_the_burst_and_the_rate_until_all_know(hosts: Hosts) -> None:
    [_] = await drained(hosts, 1)
    await hosts.start()
    joined = hosts.all[1].allowed
    bound = LIMIT.limit / 2 + RATE * RENEW_SECONDS / 2
    seconds = 30
    allowed = joined + await hosts.allowed_in(seconds)
    assert RATE * seconds + LIMIT.limit / 2 <= allowed <= RATE * seconds + bound + 2
    assert RATE * seconds - 2 <= await hosts.allowed_in(seconds) <= RATE * seconds + 2


async def test_a_crash_costs_nothing_and_its_part_is_lost_until_its_lease_expires(hosts: Hosts) -> None:
    one, two = await drained(hosts, 2)
    two.runs = False
    allowed = await hosts.allowed_in(EXPIRY)
    assert RATE * EXPIRY / 2 - 1 <= allowed <= RATE * EXPIRY
    assert one.count == 1
    assert RATE * 30 - 1 <= await hosts.allowed_in(30) <= RATE * 30 + 1


async def test_after_a_stop_its_part_goes_to_the_others_with_their_next_look(hosts: Hosts) -> None:
    one, two = await drained(hosts, 2)
    two.runs = False
    await two.lease.leave()
    seconds = 30.0
    allowed = await hosts.allowed_in(seconds)
    assert one.count == 1
    assert RATE * (seconds - RENEW_SECONDS / 2) - 1 <= allowed <= RATE * seconds + 1


async def test_an_outage_of_the_store_costs_nothing_however_long(hosts: Hosts) -> None:
    await drained(hosts, 3)
    for host in hosts.all:
        host.store.set_down(True)
    assert await hosts.allowed_in(120) <= RATE * 120 + 3
    for host in hosts.all:
        host.store.set_down(False)
        assert await hosts.allowed_in(RENEW_SECONDS / 2) <= RATE * RENEW_SECONDS / 2 + 3
    assert [host.count for host in hosts.all] == [3, 3, 3]
    assert await hosts.allowed_in(30) <= RATE * 30 + 3


async def test_hosts_cut_off_one_after_the_other_allow_the_sum_of_the_parts_that_each_knew_last(hosts: Hosts) -> None:
    await drained(hosts, 3)
    for host, known in ((hosts.all[0], 3), (hosts.all[1], 2)):
        host.store.set_down(True)
        await hosts.allowed_in(EXPIRY)
        assert host.count == known
    assert hosts.all[2].count == 1
    seconds = 30
    most = RATE * seconds * (1 / 3 + 1 / 2 + 1)
    assert most - 3 <= await hosts.allowed_in(seconds) <= most + 3
    for host in hosts.all[:2]:
        host.store.set_down(False)
    await hosts.allowed_in(2 * RENEW_SECONDS)
    assert await hosts.allowed_in(seconds) <= RATE * seconds + 3

"""Search for inputs on which code takes more CPU time than their size allows, or fails with an unexpected error.

A `Subject` names the code and the grammar of its arguments. Inputs are derivation trees of that grammar. The search
keeps those that cost the most time for each byte, and grows them: where a symbol stands inside itself, what lies
between the two can be repeated (the pumping lemma), which repeats, nests and doubles parts of any kind. What it reports
is made as small as possible first.

    GRAMMAR = {"list": ["[]", "[<items>]"], "items": ["<list>", "<items>,<items>"]}
    check(Subject("json", GRAMMAR, ("list",), json.loads, refusals=(ValueError,)))
"""

import gc
import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from tests.slow_inputs.derivations import MAX_CHARS, Grammar, Tree, derive, graft, pump, shrink

SECONDS_FOR_EACH_MEBIBYTE = 0.050  # for each started MiB of input, by design
SEARCH_SECONDS = float(os.environ.get("SLOW_INPUTS_SECONDS", "0.7"))  # CPU time for a subject; more finds more
_REFERENCE_SECONDS = 0.005  # what `_reference_work` takes on a machine that does nothing else
_HANGS_SECONDS = 1.0  # of CPU time, after which a call is interrupted
_SURVIVORS = 4  # of about the same size
_FRESH = 24  # derivations to begin with
_SHRINKING_CALLS = 400
_SHRINKING_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Subject:
    """Code under test: `call` takes one string for each symbol of `arguments`, and may raise `refusals`.

    `written` makes an input of a derived text, where that is written in another notation; it is not measured. An input
    may take `seconds` for each started MiB, and its text have `max_chars`.
    """

    name: str
    grammar: Grammar
    arguments: tuple[str, ...]
    call: Callable[..., object]
    refusals: tuple[type[Exception], ...] = ()
    written: Callable[[str], str | bytes] = str
    seconds: float = SECONDS_FOR_EACH_MEBIBYTE
    max_chars: int = MAX_CHARS

    def allowed_seconds(self, size: int) -> float:
        """Return the CPU time that an input of this many bytes may take."""
        return self.seconds * (size // (1 << 20) + 1)


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one call took, in seconds of CPU time, and the unexpected error that it raised, if any."""

    seconds: float
    size: int  # of the arguments, in bytes of UTF-8
    allowed: float  # seconds, on a machine that does nothing else
    error: BaseException | None = None
    slowdown: float = 1.0  # of the machine, by its other work

    @property
    def is_bad(self) -> bool:
        """Return whether the call broke the bound or failed."""
        return self.error is not None or self.seconds > self.allowed * self.slowdown


@dataclass(frozen=True, slots=True)
class Finding:
    """The smallest input found that breaks the bound."""

    subject: str
    arguments: tuple[str, ...]
    measurement: Measurement

    def __str__(self) -> str:
        texts = ", ".join(_abridge(text) for text in self.arguments)
        if self.measurement.error is not None:
            return f"{self.subject}({texts}) raised {self.measurement.error!r:.200}"
        took, allowed = self.measurement.seconds * 1000, self.measurement.allowed * 1000
        return f"{self.subject}({texts}), {self.measurement.size} bytes, took {took:.0f} ms; allowed are {allowed:.0f}"


Trees = tuple[Tree, ...]
"""One input: a tree for each argument."""

Survivors = dict[int, list[tuple[float, Trees]]]
"""The slowest inputs with their seconds, by size (a power of two): what grows fastest wins only where it is large."""


def check(subject: Subject, seed: int = 0) -> None:
    """Search as long as SEARCH_SECONDS says. AssertionError with the finding if an input breaks the bound."""
    finding = search(subject, SEARCH_SECONDS, seed)
    assert finding is None, str(finding)


def search(subject: Subject, seconds: float, seed: int = 0) -> Finding | None:
    """Return the smallest input found within this CPU time that breaks the bound, None if there is none."""
    chance = random.Random(f"{subject.name} {seed}")
    survivors: Survivors = {}
    calls = 0
    with _settled_memory():
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            fresh = calls < _FRESH or chance.random() < 0.1
            trees = _fresh_input(subject, chance) if fresh else _grown_input(subject, survivors, chance)
            calls += 1
            result = measure(subject, trees)
            if result.is_bad and (finding := _confirm(subject, trees, chance)) is not None:
                return finding
            alike = survivors.setdefault(result.size.bit_length(), [])
            alike.append((result.seconds, trees))
            alike.sort(key=lambda survivor: survivor[0], reverse=True)
            del alike[_SURVIVORS:]
    return None


def measure(subject: Subject, trees: Sequence[Tree]) -> Measurement:
    """Call the subject once."""
    arguments = [subject.written(tree.text()) for tree in trees]
    size = sum(map(_size, arguments))
    allowed = subject.allowed_seconds(size)
    error: BaseException | None = None
    start = time.thread_time()
    try:
        with _interrupted_if_it_hangs():
            subject.call(*arguments)
    except subject.refusals:
        pass
    except (Exception, _HangsError) as raised:  # noqa: BLE001 - what is raised is what is looked for
        error = None if isinstance(raised, _HangsError) else raised
    seconds = time.thread_time() - start
    return Measurement(seconds, size, allowed, error, _slowdown() if seconds > allowed else 1.0)


def _size(argument: str | bytes) -> int:
    return len(argument if isinstance(argument, bytes) else argument.encode("utf-8", "surrogatepass"))


def _slowdown() -> float:
    """Return how many times longer than usual this machine takes right now, at least 1."""
    start = time.thread_time()
    _reference_work()
    return max(1.0, (time.thread_time() - start) / _REFERENCE_SECONDS)


def _reference_work() -> int:
    return len([(number, [number]) for number in range(28_000)])


def _confirm(subject: Subject, trees: Trees, chance: random.Random) -> Finding | None:
    """Return the finding for a bad input, made smaller; None if it was the machine that was slow."""
    best = _quickest(subject, trees)
    if not best.is_bad:
        return None
    end = time.thread_time() + _SHRINKING_SECONDS
    for _ in range(_SHRINKING_CALLS):
        if time.thread_time() > end:
            break
        index = chance.randrange(len(trees))
        smaller = shrink(subject.grammar, trees[index], chance)
        if smaller is None:
            continue
        candidate = (*trees[:index], smaller, *trees[index + 1 :])
        if measure(subject, candidate).is_bad and (result := _quickest(subject, candidate)).is_bad:
            trees, best = candidate, result
    return Finding(subject.name, tuple(tree.text() for tree in trees), best)


def _quickest(subject: Subject, trees: Sequence[Tree]) -> Measurement:
    """Return the best of up to five calls, so that only what is slow each time counts."""
    best = measure(subject, trees)
    for _ in range(4):
        if best.error is not None or not best.is_bad or best.seconds > 4 * best.allowed:
            break
        best = min(best, measure(subject, trees), key=lambda one: one.seconds)
    return best


def _fresh_input(subject: Subject, chance: random.Random) -> Trees:
    return tuple(derive(subject.grammar, symbol, chance) for symbol in subject.arguments)


def _grown_input(subject: Subject, survivors: Survivors, chance: random.Random) -> Trees:
    """Return a survivor with arguments grown, changed, or taken from another survivor."""
    trees = list(_choose(survivors, chance))
    for _ in range(chance.choice((1, 1, 2, 3))):
        index = chance.randrange(len(trees))
        other = _choose(survivors, chance)[index]
        change = chance.random()
        if change < 0.6:
            trees[index] = pump(trees[index], chance, subject.max_chars)
        elif change < 0.75:
            trees[index] = other
        else:
            trees[index] = graft(subject.grammar, trees[index], other, chance, subject.max_chars)
    return tuple(trees)


def _choose(survivors: Survivors, chance: random.Random) -> Trees:
    return chance.choice(chance.choice(list(survivors.values())))[1]


class _HangsError(BaseException):
    """A call was interrupted. No Exception, so that the code under test does not catch it."""


@contextmanager
def _interrupted_if_it_hangs() -> Iterator[None]:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise _HangsError

    previous = signal.signal(signal.SIGVTALRM, interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, _HANGS_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)


@contextmanager
def _settled_memory() -> Iterator[None]:
    """Keep the collector away from what is in memory already, which is not the subject's."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _abridge(text: str) -> str:
    return repr(text) if len(text) <= 160 else f"{text[:100]!r}..{text[-40:]!r}({len(text)} characters)"

"""The `_sidecar` object of a model: budgets and limits, fallback models, merged requests, dropped parameters.

Extensions add members of their own. The same rules hold for an object that a caller gives and one that was stored: only
the sidecar writes it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, TypeVar

from opensearch_ml_stream.connectors.errors import InvalidRequest

BUDGET_SUBJECTS = ("model", "user")
BUDGET_ENFORCEMENTS = ("hard", "soft")
MAX_BUDGETS = 16
MAX_FALLBACK_MODELS = 8
MAX_DROP_PARAMS = 64

_MAX_ID_LENGTH = 512
_MAX_MEMBER_LENGTH = 256
_MAX_SECONDS = 7 * 86400
_MAX_STREAMS = 1_000_000
_MAX_BATCH_DOCS = 2048  # as OpenAI takes in one call of embeddings
_MAX_BATCH_WAIT_MS = 1000
_MAX_AMOUNT = 1e15  # of tokens, money, or a price; beyond it a float no longer counts every token
_WINDOW = re.compile(r"([1-9][0-9]{0,5})([smhd])")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_MAX_WINDOW_SECONDS = 366 * 86400

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Open streams and times, in seconds, of a model's calls; None does not limit.

    `max_streams` and `max_streams_per_user` count the predictions in flight on one server, over all its workers.
    `total_timeout` runs from the provider's call to the end of its response, `first_byte_timeout` to the first byte of
    its body, retries included; `between_chunks_timeout` is the longest silence after that.
    """

    max_streams: int | None = None
    max_streams_per_user: int | None = None
    total_timeout_seconds: float | None = None
    first_byte_timeout_seconds: float | None = None
    between_chunks_timeout_seconds: float | None = None

    @property
    def are_of_time(self) -> bool:
        """Whether any of them is a time."""
        times = (self.total_timeout_seconds, self.first_byte_timeout_seconds, self.between_chunks_timeout_seconds)
        return times != (None, None, None)


@dataclass(frozen=True, slots=True)
class Budget:
    """So many tokens, or so much money, in a window of time; exactly one of `tokens` and `cost` is set.

    `per` is whose budget it is: the model's, or each user's of the model. A hard one refuses calls when it is spent, a
    soft one says so in the response. A window is a number and s, m, h or d, such as `1d`; it begins with a multiple of
    its length since 1970 (UTC), so that all servers count the same one.
    """

    window: str
    tokens: float | None = None
    cost: float | None = None
    per: str = "model"
    enforcement: str = "hard"

    @property
    def window_seconds(self) -> int:
        """The length of the window."""
        return _window_seconds(self.window)


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of a million tokens, in whatever currency the cost budgets have.

    Input that is read from a cache of prompts, or written to one, costs as other by default. Reasoning tokens are
    output tokens.
    """

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None


@dataclass(frozen=True, slots=True)
class InputOptions:
    """Where a model takes its input: `prompt` is the connector's parameter for a text, None for the one of that use."""

    prompt: str | None = None


@dataclass(frozen=True, slots=True)
class BatchingSettings:
    """How embedding requests are merged: into calls of at most `max_docs` texts, after at most `max_wait_ms`."""

    max_docs: int
    max_wait_ms: int


@dataclass(frozen=True, slots=True)
class SidecarSettings:
    """The sidecar's settings of one model.

    `drop_params` are members of clients' requests that are left out where the model's provider cannot be told them:
    without that they are refused.
    """

    limits: CallLimits = CallLimits()  # a frozen value
    budgets: tuple[Budget, ...] = ()
    prices: Prices | None = None
    fallback_model_ids: tuple[str, ...] = ()
    batching: BatchingSettings | None = None
    drop_params: tuple[str, ...] = ()
    of_extensions: tuple[object, ...] = ()

    def of(self, kind: type[_T]) -> _T:
        """Return the value of that type that an extension's member sets, or as it is by default."""
        return next((value for value in self.of_extensions if isinstance(value, kind)), None) or kind()


OWN_MEMBERS = tuple(entry.name for entry in fields(SidecarSettings) if entry.name != "of_extensions")


@dataclass(frozen=True, slots=True)
class ModelOption:
    """A member of `_sidecar` that an extension adds: an object with the fields of the dataclass `kind`.

    `read` returns the `kind` of such an object, InvalidRequest if it is wrong.
    """

    kind: type
    read: Callable[[object], object]


ModelOptions = Mapping[str, ModelOption]
NO_OPTIONS: ModelOptions = MappingProxyType({})


def read_sidecar_settings(value: object, options: ModelOptions = NO_OPTIONS) -> SidecarSettings:
    """Read a `_sidecar` object, {} for one that sets nothing; InvalidRequest names what is wrong.

    Members that are null are absent. `options` are the members that extensions add.
    """
    given = _members(value, "_sidecar", (*OWN_MEMBERS, *options))
    settings = SidecarSettings(
        _call_limits(given.get("limits", {})),
        tuple(_budget(budget, f"_sidecar.budgets[{place}]") for place, budget in enumerate(_budgets(given))),
        _prices(given["prices"]) if "prices" in given else None,
        _fallback_model_ids(given.get("fallback_model_ids", [])),
        _batching(given["batching"]) if "batching" in given else None,
        _drop_params(given.get("drop_params", [])),
        tuple(option.read(given[name]) for name, option in options.items() if name in given),
    )
    if settings.prices is None and any(budget.cost is not None for budget in settings.budgets):
        raise InvalidRequest("A budget of cost needs the prices of tokens: give _sidecar.prices too")
    return settings


def _call_limits(value: object) -> CallLimits:
    given = members_of(value, "_sidecar.limits", CallLimits)
    counts = {
        name: _integer(given[name], f"_sidecar.limits.{name}", 1, _MAX_STREAMS)
        for name in ("max_streams", "max_streams_per_user")
        if name in given
    }
    seconds = {
        name: _number(limit, f"_sidecar.limits.{name}", 0.001, _MAX_SECONDS)
        for name, limit in given.items()
        if name not in counts
    }
    return CallLimits(**counts, **seconds)  # type: ignore[arg-type]


def _budgets(given: Mapping[str, Any]) -> list[Any]:
    budgets = given.get("budgets", [])
    if not isinstance(budgets, list) or len(budgets) > MAX_BUDGETS:
        raise InvalidRequest(f"_sidecar.budgets must be an array of at most {MAX_BUDGETS} budgets")
    return budgets


def _budget(value: object, where: str) -> Budget:
    given = members_of(value, where, Budget)
    if ("tokens" in given) is ("cost" in given):
        raise InvalidRequest(f"{where} needs either tokens or cost")
    amounts = {
        name: _number(given[name], f"{where}.{name}", 0, _MAX_AMOUNT) for name in ("tokens", "cost") if name in given
    }
    window = given.get("window")
    if not isinstance(window, str) or not 1 <= _window_seconds(window) <= _MAX_WINDOW_SECONDS:
        raise InvalidRequest(f"{where}.window must be a number and s, m, h or d, such as 1d, and at most 366d")
    per = _choice(given.get("per", "model"), f"{where}.per", BUDGET_SUBJECTS)
    enforcement = _choice(given.get("enforcement", "hard"), f"{where}.enforcement", BUDGET_ENFORCEMENTS)
    return Budget(window, per=per, enforcement=enforcement, **amounts)


def _prices(value: object) -> Prices:
    given = members_of(value, "_sidecar.prices", Prices)
    if "input" not in given or "output" not in given:
        raise InvalidRequest("_sidecar.prices needs input and output: the price of a million tokens of each")
    return Prices(**{name: _number(price, f"_sidecar.prices.{name}", 0, _MAX_AMOUNT) for name, price in given.items()})


def _fallback_model_ids(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(id, str) and 0 < len(id) <= _MAX_ID_LENGTH for id in value):
        raise InvalidRequest("_sidecar.fallback_model_ids must be an array of ids of models")
    if len(value) > MAX_FALLBACK_MODELS or len(set(value)) < len(value):
        raise InvalidRequest(f"_sidecar.fallback_model_ids must be at most {MAX_FALLBACK_MODELS} different ids")
    return tuple(value)


def _drop_params(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise InvalidRequest('_sidecar.drop_params must be an array of names of members, such as ["top_k"]')
    if len(value) > MAX_DROP_PARAMS or any(len(name) > _MAX_MEMBER_LENGTH for name in value):
        raise InvalidRequest(
            f"_sidecar.drop_params must be at most {MAX_DROP_PARAMS} names of at most {_MAX_MEMBER_LENGTH} characters"
        )
    return tuple(value)


def _batching(value: object) -> BatchingSettings:
    given = members_of(value, "_sidecar.batching", BatchingSettings)
    if len(given) < len(fields(BatchingSettings)):
        raise InvalidRequest("_sidecar.batching needs max_docs and max_wait_ms")
    return BatchingSettings(
        _integer(given["max_docs"], "_sidecar.batching.max_docs", 2, _MAX_BATCH_DOCS),
        _integer(given["max_wait_ms"], "_sidecar.batching.max_wait_ms", 1, _MAX_BATCH_WAIT_MS),
    )


def members_of(value: object, where: str, kind: type) -> dict[str, Any]:
    """Return the members of an object that are not null; InvalidRequest for one that the dataclass has no field for."""
    return _members(value, where, tuple(entry.name for entry in fields(kind)))


def _members(value: object, where: str, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the members of an object that are not null; InvalidRequest for one of another name."""
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{where} must be an object")
    for name in value:
        if name not in names:
            raise InvalidRequest(f"{where} has no member [{name}]; it knows {', '.join(names)}")
    return {name: member for name, member in value.items() if member is not None}


def _number(value: object, where: str, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:  # NaN is not
        raise InvalidRequest(f"{where} must be a number from {low:g} to {high:g}")
    return float(value)


def _integer(value: object, where: str, low: int, high: int) -> int:
    number = _number(value, where, low, high)
    if not number.is_integer():
        raise InvalidRequest(f"{where} must be an integer")
    return int(number)


def _choice(value: object, where: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise InvalidRequest(f"{where} must be {' or '.join(choices)}")
    return str(value)


def _window_seconds(window: str) -> int:
    """Return a window's length, 0 for what is none."""
    match = _WINDOW.fullmatch(window)
    return int(match[1]) * _UNIT_SECONDS[match[2]] if match else 0

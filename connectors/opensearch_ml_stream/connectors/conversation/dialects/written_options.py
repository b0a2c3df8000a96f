"""Options of a conversation under the names that a provider has for them."""

from collections.abc import Callable, Mapping
from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import Conversation
from opensearch_ml_stream.connectors.conversation.dialect import Refuse

# What asks for nothing, since it is what every provider does without being asked.
_ASKS_NOTHING: Mapping[str, Callable[[Any], bool]] = {
    "stop": lambda texts: not texts,
    "presence_penalty": lambda penalty: penalty == 0,
    "frequency_penalty": lambda penalty: penalty == 0,
    "logit_bias": lambda biases: not biases,
    "logprobs": lambda wanted: wanted is False,
    "top_logprobs": lambda count: count == 0,
    "n": lambda count: count == 1,
    "metadata": lambda pairs: not pairs,
    "service_tier": lambda tier: tier in ("auto", "default", "standard"),
    "modalities": lambda modalities: modalities == ["text"],
    "verbosity": lambda verbosity: verbosity == "medium",
    "reasoning_summary": lambda summary: not wants_summary(summary),
}
_WHY = {
    "n": "the model gives one answer to a request",
    "logprobs": "the answers of this provider are read without log probabilities",
    "top_logprobs": "the answers of this provider are read without log probabilities",
}

_LEAST_TOKENS = {"xhigh": 8192, "high": 4096, "medium": 2048, "low": 1024, "minimal": 1, "none": 0}
_BUDGETS = {**_LEAST_TOKENS, "minimal": 512}


def wants_summary(summary: Any) -> bool:
    """Tell whether the option `reasoning_summary` asks to see the reasoning."""
    return summary not in (None, False, "none", "omitted")


def reasoning_effort(conversation: Conversation) -> str | None:
    """Return the effort of reasoning, a budget of tokens as what it is about, for a provider without budgets."""
    effort: str | None = conversation.options.get("reasoning_effort")
    budget: int | None = conversation.options.get("reasoning_tokens")
    if effort is None and budget is not None:
        return next((name for name, least in _LEAST_TOKENS.items() if budget >= least and name != "xhigh"), "none")
    return effort


def reasoning_budget(conversation: Conversation, refuse: Refuse, budgets: Mapping[str, int] = _BUDGETS) -> int | None:
    """Return the tokens for reasoning, an effort as what it is about by `budgets`, for a provider without efforts."""
    effort: str | None = conversation.options.get("reasoning_effort")
    budget: int | None = conversation.options.get("reasoning_tokens")
    if budget is None and effort is not None:
        if effort not in budgets:
            refuse(conversation.member("reasoning_effort"), f"known are {', '.join(budgets)}")
        return budgets.get(effort)
    return budget


def write_options(
    conversation: Conversation, refuse: Refuse, names: Mapping[str, str], besides: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the options under the provider's `names`; refuse the others, but those `besides` that the caller writes.

    What is unknown of the client's request is refused too: it speaks another dialect.
    """
    for path in conversation.unknown:
        refuse(path)
    written = {}
    for name, value in conversation.options.items():
        if name in names:
            written[names[name]] = value
        elif name not in besides and not (name in _ASKS_NOTHING and _ASKS_NOTHING[name](value)):
            refuse(conversation.member(name), _WHY.get(name, ""))
    return written

"""Options of a conversation under the names that a provider has for them."""

from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import Conversation
from opensearch_ml_stream.connectors.conversation.dialect import Refuse
from opensearch_ml_stream.connectors.conversation.dialects.alternating_turns import refuse_rest
from opensearch_ml_stream.connectors.conversation.dialects.chat_completions import effort_of_budget

_BUDGETS = {"none": 0, "minimal": 512, "low": 1024, "medium": 2048, "high": 4096, "xhigh": 8192}


def wants_summary(summary: Any) -> bool:
    """Tell whether the option `reasoning_summary` asks to see the reasoning."""
    return summary not in (None, False, "none", "omitted")


def reasoning_effort(conversation: Conversation) -> str | None:
    """Return the effort of reasoning, a budget of tokens as what it is about, for a provider without budgets."""
    effort: str | None = conversation.options.get("reasoning_effort")
    budget: int | None = conversation.options.get("reasoning_tokens")
    if effort is None and budget is not None:
        return effort_of_budget(budget)
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
    """Return the options under the provider's `names`; refuse others, but those `besides` that the caller writes."""
    refuse_rest(conversation, refuse, {*names, *besides})
    return {names[name]: value for name, value in conversation.options.items() if name in names}

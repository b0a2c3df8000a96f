"""The tables of docs/dialects.md. `python -m tests.client_dialects.dialects_page` writes them there."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from opensearch_ml_stream.connectors.conversation.conversation_request import Refusing, written_body
from opensearch_ml_stream.connectors.conversation.dialect import OPENAI_CHAT, Dialect
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from tests.client_dialects.clients import CLIENTS, Client
from tests.client_dialects.features import FEATURES, Feature

PAGE = Path(__file__).parents[3] / "docs" / "dialects.md"
PASSES, CHANGED, LEFT_OUT, REFUSED = "✓", "~", "·", "✗"

# What people call an interface, by its name, or by a word of its URL if it has none.
_TITLES = {
    "openai/v1/chat/completions": "others",
    "azure/openai/chat/completions": "OpenAI, Azure",
    "api-version": "Azure until 2024-08",
    "databricks/invocations": "Databricks",
    "dashscope/v1/chat/completions": "DashScope",
    "deepseek/v1/chat/completions": "DeepSeek",
    "fireworks/v1/chat/completions": "Fireworks, SGLang, llama.cpp",
    "groq/v1/chat/completions": "Groq",
    "mistral/v1/chat/completions": "Mistral",
    "ollama/v1/chat/completions": "Ollama",
    "openrouter/v1/chat/completions": "OpenRouter",
    "perplexity/chat/completions": "Perplexity",
    "vllm/v1/chat/completions": "vLLM",
    "watsonx/text/chat": "watsonx",
    "xai/v1/chat/completions": "xAI",
    "openai/v1/responses": "OpenAI Responses",
    "openai/v1/completions": "completions",
    "anthropic/v1/messages": "Anthropic",
    "vertex/anthropic": "Anthropic on Vertex",
    "anthropic.*/invoke": "Anthropic on Bedrock",
    "bedrock/converse/claude": "Converse, Claude",
    "bedrock/converse": "Converse, others",
    "gemini/v1beta/generatecontent": "Gemini, Vertex",
    "gemini/v1beta/interactions": "Gemini Interactions",
    "cohere/v2/chat": "Cohere",
    "dashscope/generation": "DashScope generation",
    "ollama/api/chat": "Ollama chat",
    "cloudflare/ai/run": "Workers AI run",
}


@dataclass(slots=True)
class Recording(Refusing):
    """Lets all members be left out, and keeps which."""

    refused: list[str] = field(default_factory=list)

    def __call__(self, member: str, why: str = "") -> None:
        self.refused.append(member)


def shipped_dialects() -> Mapping[str, Dialect]:
    """All dialects, by what people call the providers that speak them."""
    found: dict[int, tuple[Dialect, list[str]]] = {}
    for provider in SHIPPED.providers:
        for interface in provider.interfaces:
            if (dialect := SHIPPED.dialect_of(interface)) is not None:
                found.setdefault(id(dialect), (dialect, []))[1].extend((*interface.names, *interface.urls))
    titled = {_title(names): dialect for dialect, names in found.values()}
    assert len(titled) == len(found)
    return {title: titled[title] for title in _TITLES.values()}


def _title(names: list[str]) -> str:
    exact = [title for name, title in _TITLES.items() if name in names]
    return [*exact, *(title for part, title in _TITLES.items() if any(part in name for name in names))][0]


def sign(client: Client, dialect: Dialect, feature: Feature) -> str:
    """What becomes of a feature of a client's request at a provider that speaks the dialect."""
    without, with_it = (_sent(client, dialect, body) for body in feature.bodies[client.dialect])
    if with_it is None or with_it[1]:
        return REFUSED
    before, after = (orjson.dumps(sent[0] if sent else {}).decode() for sent in (without, with_it))
    if len(re.findall(feature.mark, after)) > len(re.findall(feature.mark, before)):
        return PASSES
    return LEFT_OUT if before == after else CHANGED


def _sent(client: Client, dialect: Dialect, body: dict[str, Any]) -> tuple[dict[str, Any], list[str]] | None:
    """What is sent for a body, and what was refused of it; None where there is nothing to be sent at all."""
    refuse = Recording(frozenset(), dialect.name)
    try:
        return written_body(client.request(body), dialect, refuse), refuse.refused
    except InvalidRequest:
        return None


def tables(client: Client) -> Iterator[str]:
    """The blocks of a client's dialect: a table for the providers of chat completions, and one for the others."""
    features = [feature for feature in FEATURES if client.dialect in feature.bodies]
    dialects = shipped_dialects()
    columns = {title: [sign(client, dialect, one) for one in features] for title, dialect in dialects.items()}
    of_chat = [title for title in columns if dialects[title].name == OPENAI_CHAT]
    others = [title for title in columns if title not in of_chat]
    yield f"## {client.title}"
    for heading, titles in (("Providers of chat completions", of_chat), ("Other providers", others)):
        yield f"### {heading}, for clients of {client.title}"
        yield from _table([feature.name for feature in features], {title: columns[title] for title in titles})


def _table(names: list[str], columns: Mapping[str, list[str]]) -> Iterator[str]:
    """What is the same for all providers as sentences, and the rest as a table; those that are alike share a column."""
    merged: dict[tuple[str, ...], list[str]] = {}
    for title, signs in columns.items():
        merged.setdefault(tuple(signs), []).append(title)
    rows = dict(zip(names, zip(*merged, strict=True), strict=True))
    for shared, sentence in ((PASSES, "All take"), (LEFT_OUT, "Left out for all"), (REFUSED, "None takes")):
        alike = [name for name, signs in rows.items() if set(signs) == {shared}]
        if alike:
            yield f"{sentence}: {'; '.join(alike)}."
    head = [f"| | {' | '.join(', '.join(titles) for titles in merged.values())} |", f"|---|{':-:|' * len(merged)}"]
    differing = {name: signs for name, signs in rows.items() if set(signs) == {CHANGED} or len(set(signs)) > 1}
    yield "\n".join([*head, *(f"| {name} | {' | '.join(signs)} |" for name, signs in differing.items())])


def generated() -> str:
    """What follows the introduction of the page."""
    return "\n\n".join(line for client in CLIENTS for line in tables(client)) + "\n"


def introduction() -> str:
    """The page up to the first table's heading."""
    before, heading, _ = PAGE.read_text("utf-8").partition(f"## {CLIENTS[0].title}\n")
    assert heading
    return before


if __name__ == "__main__":
    PAGE.write_text(introduction() + generated(), "utf-8")

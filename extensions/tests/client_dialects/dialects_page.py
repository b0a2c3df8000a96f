"""The tables of docs/dialects.md. `python -m tests.client_dialects.dialects_page` writes them there."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from opensearch_ml_stream.connectors.conversation.conversation_request import Refusing, written_body
from opensearch_ml_stream.connectors.conversation.dialect import OPENAI_CHAT, Dialect
from opensearch_ml_stream.connectors.documents import Connector, read_connector
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from opensearch_ml_stream.connectors.stream_spec_lookup import choose_spec
from tests.client_dialects.clients import CLIENTS, Client
from tests.client_dialects.features import FEATURES, Feature

_ROOT = Path(__file__).parents[3]
PAGE = _ROOT / "docs" / "dialects.md"
PASSES, CHANGED, LEFT_OUT, REFUSED = "✓", "~", "·", "✗"
SENTENCES = ((PASSES, "All take"), (LEFT_OUT, "Left out for all"), (REFUSED, "None takes"))

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
    "vertex/anthropic": "Anthropic on Vertex and Bedrock",
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


def moved_blueprints() -> Mapping[str, Connector]:
    """The connectors of the blueprints, as if each server were at another address."""
    return {name: _connector(document, "http://127.0.0.1:1") for name, document in _blueprints().items()}


def dialect_of(connector: Connector) -> Dialect | None:
    """The dialect in which conversations are sent by a connector, None for one of vectors and the like."""
    try:
        return choose_spec(connector, connector.action(), {}).dialect
    except InvalidRequest:
        return None


def _blueprints() -> Mapping[str, Any]:
    files = sorted((_ROOT / "blueprints").glob("*.json"))
    return {file.stem: orjson.loads(file.read_bytes())["connector"] for file in files}


def _connector(document: dict[str, Any], endpoint: str) -> Connector:
    return read_connector({**document, "parameters": {**document["parameters"], "endpoint": endpoint}})


def _title(names: list[str]) -> str:
    exact = [title for name, title in _TITLES.items() if name in names]
    return [*exact, *(title for part, title in _TITLES.items() if any(part in name for name in names))][0]


def sign(client: Client, dialect: Dialect, feature: Feature) -> str:
    """What becomes of a feature of a client's request at a provider that speaks the dialect."""
    without, with_it = (_sent(client, dialect, body) for body in feature.bodies[client.dialect])
    if with_it is None or with_it[1]:
        return REFUSED
    return sign_of(feature, without[0] if without else {}, with_it[0])


def sign_of(feature: Feature, without: dict[str, Any], with_it: dict[str, Any]) -> str:
    """What became of a feature of a client's request, by what is sent for a request without it and with it."""
    before, after = (orjson.dumps(sent).decode() for sent in (without, with_it))
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
    for shared, sentence in SENTENCES:
        alike = [name for name, signs in rows.items() if set(signs) == {shared}]
        if alike:
            yield f"{sentence}: {'; '.join(alike)}."
    head = [f"| | {' | '.join(', '.join(titles) for titles in merged.values())} |", f"|---|{':-:|' * len(merged)}"]
    differing = {name: signs for name, signs in rows.items() if set(signs) == {CHANGED} or len(set(signs)) > 1}
    yield "\n".join([*head, *(f"| {name} | {' | '.join(signs)} |" for name, signs in differing.items())])


def _table_of_columns() -> str:
    """Which names of interfaces and which blueprints have which column; none for a model that is known by its URL."""
    titles = {id(dialect): title for title, dialect in shipped_dialects().items()}
    names: dict[str, list[str]] = {title: [] for title in titles.values()}
    blueprints: dict[str, list[str]] = {title: [] for title in titles.values()}
    for name, dialect in SHIPPED.dialects.items():
        names[titles[id(dialect)]].append(f"`{name}`")
    for name, connector in moved_blueprints().items():
        moved, own = dialect_of(connector), dialect_of(read_connector(_blueprints()[name]))
        if moved is not None:
            blueprints[titles[id(moved)]].append(f"`{name}`")
        if own is not None and own is not moved:
            blueprints[titles[id(own)]].append(f"`{name}` at its own address")
    rows = (f"| {title} | {', '.join(names[title])} | {', '.join(blueprints[title])} |" for title in names)
    return "\n".join(["| column | `_llm_interface` | blueprints |", "|---|---|---|", *rows])


def generated() -> str:
    """What follows the introduction of the page."""
    of_clients = (line for client in CLIENTS for line in tables(client))
    return "\n\n".join([*of_clients, "## Columns", _table_of_columns()]) + "\n"


def introduction() -> str:
    """The page up to the first table's heading."""
    before, heading, _ = PAGE.read_text("utf-8").partition(f"## {CLIENTS[0].title}\n")
    assert heading
    return before


if __name__ == "__main__":
    PAGE.write_text(introduction() + generated(), "utf-8")

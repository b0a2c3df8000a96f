"""Send the same exchanges to two servers and compare what they respond, without ids and times."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import yaml

Step = tuple[str, Any] | tuple[str, Any, Mapping[str, str]]
"""`METHOD /path`, body (an object is sent as JSON, bytes as they are, None not at all), headers.

In path and body `@name` stands for a name of the exchange's own, `@provider` for the provider's URL, and `@connector`,
`@model`, `@group`, `@task` for the id that an earlier response of the exchange gave. The line `wait` lets as many
seconds pass as its body says.
"""
Exchanges = Mapping[str, Sequence[Step]]
"""Requests in their order, by what they try."""

CONCURRENCY = 8
ATTEMPTS = 150
ATTEMPT_SECONDS = 0.2
_IDS = {"connector_id": "@connector", "model_id": "@model", "model_group_id": "@group", "task_id": "@task"}
_INDICES = {
    "@model": ".plugins-ml-model",
    "@connector": ".plugins-ml-connector",
    "@group": ".plugins-ml-model-group",
    "@task": ".plugins-ml-task",
}
_ID = re.compile(r"(?<![\w-])(?=[\w-]*[0-9A-Z])[\w-]{20}(?:[\w-]{2})?(?![\w-])")
_ENDED = ("COMPLETED", "FAILED", "error")
_TOO_BUSY = ("rejected_execution_exception", "exceed max running task limit", "version_conflict_engine_exception")
_TOKEN = re.compile(r"@[a-z]+")
_ALLOWED = re.compile(r"allowed: \[([A-Z, ]*)\]")
_TIME = re.compile(r"\b1[78]\d{11}\b")
_CHANGING = ("took", "_version", "_seq_no", "_primary_term", "_score", "max_score", "forced_refresh")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Status, type of the body, and body of a response; strings in it that change from run to run are replaced."""

    status: int
    content_type: str
    body: Any


@dataclass(slots=True)
class Server:
    """One of the two; `created` are the ids that it gave, by what they are ids of."""

    client: httpx.AsyncClient
    url: str
    provider: str
    run: str
    shared: dict[str, str] = field(default_factory=dict)
    created: dict[str, set[str]] = field(default_factory=lambda: {name: set() for name in _IDS.values()})

    async def share(self, shared: Exchanges, label: str = "") -> None:
        """Make what many exchanges use; from then on each token stands for the id that its last step gave.

        A second time needs a `label`, as names cannot be used twice.
        """
        limit = asyncio.Semaphore(CONCURRENCY)

        async def make(token: str, steps: Sequence[Step]) -> None:
            values = {"@name": f"parity-{self.run}-{label}{token[1:]}", "@provider": self.provider}
            async with limit:
                for step in steps:
                    response = await self._settled(values, step)
                    assert response.status_code == 200, response.text
                    self._learn_ids(response, values)
            self.shared[token] = values.get("@model") or values["@connector"]

        await asyncio.gather(*(make(token, steps) for token, steps in shared.items()))

    async def run_all(self, exchanges: Exchanges) -> dict[str, list[Outcome | None]]:
        """Return the outcomes of each exchange's steps; None for a step without the id that it needs."""
        limit = asyncio.Semaphore(CONCURRENCY)

        async def limited(number: int, steps: Sequence[Step]) -> list[Outcome | None]:
            async with limit:
                return await self._run(f"parity-{self.run}-{number}", steps)

        runs = [limited(number, steps) for number, steps in enumerate(exchanges.values())]
        return dict(zip(exchanges, await asyncio.gather(*runs), strict=True))

    async def run_each_alone(self, exchanges: Exchanges, shared: Exchanges) -> dict[str, list[Outcome | None]]:
        """Return the same as `run_all`, with no document beside an exchange's own and those of `shared` that it names.

        It begins without documents: `delete_all` before it.
        """
        outcomes = {}
        for number, (name, steps) in enumerate(exchanges.items()):
            named = set(_TOKEN.findall(repr(steps)))
            self.shared.clear()
            await self.share({token: made for token, made in shared.items() if token in named}, f"alone{number}-")
            outcomes[name] = await self._run(f"parity-{self.run}-alone{number}", steps)
            await self.delete_all()
        return outcomes

    async def _run(self, name: str, steps: Sequence[Step]) -> list[Outcome | None]:
        values = {"@name": name, "@provider": self.provider, **self.shared}
        outcomes: list[Outcome | None] = []
        for step in steps:
            if step[0] == "wait":
                await asyncio.sleep(step[1])
                continue
            text = step[0] if isinstance(step[1], bytes) else f"{step[0]} {json.dumps(step[1])}"
            if not set(_TOKEN.findall(text)) & set(_IDS.values()) <= values.keys():
                outcomes.append(None)
                continue
            response = await self._settled(values, step)
            self._learn_ids(response, values)
            outcomes.append(_outcome(response, values))
        return outcomes

    async def delete_all(self) -> None:
        """Delete what was made, straight from the indices: a model or group that is used could not be deleted."""
        await self.client.post(
            f"{self.url}/_plugins/_ml/models/_undeploy", json={"model_ids": sorted(self.created["@model"]) or ["none"]}
        )
        for token, index in _INDICES.items():
            await self.client.post(
                f"{self.url}/{index}/_delete_by_query?refresh=true&conflicts=proceed",
                json={"query": {"bool": {"should": [
                    {"ids": {"values": sorted(self.created[token])}},
                    {"prefix": {"name.keyword": f"parity-{self.run}-"}},
                ]}}},
            )  # fmt: skip

    async def _settled(self, values: Mapping[str, str], step: Step) -> httpx.Response:
        """Send the request, again while a task is not completed, or while the server has too much to do."""
        attempts = ATTEMPTS
        while True:
            response = await self._send(values, step)
            attempts -= 1
            is_running = step[0].startswith("GET /tasks/@task") and not any(state in response.text for state in _ENDED)
            if not attempts or not (is_running or any(word in response.text for word in _TOO_BUSY)):
                return response
            await asyncio.sleep(ATTEMPT_SECONDS)

    async def _send(self, values: Mapping[str, str], step: Step) -> httpx.Response:
        line, body, headers = step if len(step) == 3 else (*step, None)
        method, _, path = _filled(line, values).partition(" ")
        content = None
        sent = dict(headers or {})
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
            content = body if isinstance(body, bytes) else _filled(json.dumps(body), values).encode()
        return await self.client.request(method, f"{self.url}/_plugins/_ml{path}", content=content, headers=sent)

    def _learn_ids(self, response: httpx.Response, values: dict[str, str]) -> None:
        body = _json(response)
        for name, token in _IDS.items():
            if isinstance(body, dict) and isinstance(id := body.get(name), str) and _ID.fullmatch(id):
                values[token] = id
                self.created[token].add(id)


def _outcome(response: httpx.Response, values: Mapping[str, str]) -> Outcome:
    content_type = response.headers.get("content-type", "").partition(";")[0]
    body = _json(response)
    return Outcome(
        response.status_code, content_type, _without_changes(response.text if body is None else body, values)
    )


def _json(response: httpx.Response) -> Any:
    try:
        if response.headers.get("content-type", "").startswith("application/yaml"):
            return yaml.safe_load(response.text)
        return json.loads(response.text)
    except (ValueError, yaml.YAMLError):
        return None


def _filled(text: str, values: Mapping[str, str]) -> str:
    for token, value in values.items():
        text = text.replace(token, value)
    return text


def _without_changes(value: Any, values: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            _without_changes(name, values): _without_changes(item, values)
            for name, item in value.items()
            if name not in _CHANGING
        }
    if isinstance(value, list):
        return [_without_changes(item, values) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return "@time" if _TIME.fullmatch(str(value)) else value
    if not isinstance(value, str):
        return value
    for token, known in values.items():
        value = value.replace(known, token)
    value = _ALLOWED.sub(lambda match: f"allowed: {sorted(match[1].split(', '))}", value)  # in no order
    return _TIME.sub("@time", _ID.sub("@id", value))

"""A connector of a public ML Commons blueprint page, as one would paste it, and what has to come of it."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from integration_tests.interop.provider_dialects.dialect import Dialect, mapped
from integration_tests.support.fake_provider import FakeProvider

from tests.providers.recorded_streams import SECRET, Call, StreamedCall

KEYS = {"access_key": SECRET, "secret_key": SECRET, "session_token": SECRET}
ROLE = {"roleArn": "arn:aws:iam::123456789012:role/my-role"}

_FIXED_HOST = re.compile(r'("url": ")https?://(?!\$\{parameters\.endpoint\})[^/"]+')
_SAGEMAKER_URL = "<PLEASE ADD YOUR Sagemaker MODEL INFERENCE ENDPOINT URL>"


@dataclass(frozen=True, slots=True)
class PublicBlueprint:
    """`text` is the body of a request to connectors/_create, or to models/_register where `inline`.

    `refused`: what its creation says, or else its first call, for those that only the managed service can use.
    `needs_painless`: whole predictions need an OpenSearch. `stream_says`: why it cannot stream.
    """

    name: str
    text: str
    dialect: Dialect
    inline: bool = False
    refused: str | None = None
    needs_painless: bool = False
    stream_says: str = "cannot stream"

    def at(self, provider: FakeProvider) -> bytes:
        """The body with its hosts, and nothing else, changed to the provider's."""
        text = self.text.replace(_SAGEMAKER_URL, f"{provider.url}/invocations")
        text = text.replace("{{endpoint_name}}", "my-endpoint").replace("$HOST", provider.url.removeprefix("http://"))
        text = text.replace("https://${parameters.endpoint}", "http://${parameters.endpoint}")
        return _FIXED_HOST.sub(rf"\1{provider.url}", text).encode()


def connector(
    name: str,
    url: str,
    request_body: str,
    parameters: Mapping[str, Any],
    credential: Mapping[str, str],
    **more: Any,
) -> dict[str, Any]:
    """A create request. `more`: protocol, headers, pre, post, client_config, supports_structured_output."""
    action: dict[str, Any] = {"action_type": "predict", "method": "POST", "url": url}
    action["headers"] = more.get("headers", {})
    action["request_body"] = request_body
    for key in ("pre", "post"):
        if key in more:
            action[f"{key}_process_function"] = more[key]
    if more.get("supports_structured_output"):
        action["supports_structured_output"] = True
    body = {
        "name": name,
        "description": f"The connector to {name}",
        "version": 1,
        "protocol": more.get("protocol", "http"),
        "parameters": parameters,
        "credential": credential,
        "actions": [action, *more.get("further_actions", ())],
    }
    return body | ({"client_config": more["client_config"]} if "client_config" in more else {})


def row(
    name: str,
    body: Mapping[str, Any],
    calls: Dialect,
    credentials: Sequence[Mapping[str, str]] = (),
    **more: Any,
) -> list[PublicBlueprint]:
    """One blueprint for each of the credentials, or for the body's own; roles are refused."""
    rows = []
    for credential in credentials or [body["credential"]]:
        kind = " with a role" if "roleArn" in credential else ""
        text = json.dumps({**body, "credential": credential}, indent=2, ensure_ascii=False)
        one = PublicBlueprint(f"{name}{kind}", text, calls, **more)
        rows.append(replace(one, refused="Missing credential") if kind and body["protocol"] == "aws_sigv4" else one)
    return rows


def commented(rows: list[PublicBlueprint]) -> list[PublicBlueprint]:
    """With comments, as some pages have them."""
    return [
        replace(
            one,
            text=re.sub(r'("credential": \{)', r"\1 // or use a role, see below: \"roleArn\"", one.text)
            .replace('"version": 1,', '"version": 1, // yours')
            .replace("{", "{ /* replace what is yours */", 1),
        )
        for one in rows
    ]


def with_a_brace_too_many(rows: list[PublicBlueprint]) -> list[PublicBlueprint]:
    return [replace(one, text=one.text + "\n}") for one in rows]


def calls(
    path: str,
    sent: Any,
    response: Any,
    prediction: Mapping[str, Any],
    predicted: list[Any] | None = None,
    streamed: StreamedCall | None = None,
    **more: Any,
) -> Dialect:
    """A dialect whose prediction is one call."""
    whole = (Call(path, sent, response),)
    return Dialect(whole, prediction, mapped(response) if predicted is None else predicted, streamed=streamed, **more)


def tensors(*vectors: list[float], name: str = "sentence_embedding", data_type: str = "FLOAT32") -> list[Any]:
    return [[{"name": name, "data_type": data_type, "shape": [len(vector)], "data": vector} for vector in vectors]]

"""What each provider's request may look like, and where a caller's parameters arrive in it, by shipped blueprint.

A row is a JSON Schema of the provider's body, written from its API reference (`source`), and the place of every
parameter. A blueprint whose provider takes OpenAI's chat has a row of one line, `openai_chat(...)`. One without a row
has the places of the question, or of the texts, in its recorded exchange.
"""

from typing import Any

from tests.providers.recorded_streams import EXCHANGES, QUESTION, Exchange
from tests.selection.provider_requests import aws_requests, hosted_requests, openai_requests, own_server_requests
from tests.selection.provider_requests.rows import Path, Place, ProviderRequest


def _row(exchange: Exchange) -> ProviderRequest:
    body = exchange.calls[0].body
    if exchange.streamed is None:
        wanted = exchange.texts if len(exchange.calls) == 1 else exchange.texts[0]
        return ProviderRequest(exchange.source, {}, texts=_find(body, wanted))
    path = _find(body, QUESTION)
    before, _, after = str(_at(body, path)).partition(QUESTION)
    changes = {name: value for name, value in exchange.streamed.body.items() if body.get(name) != value}
    return ProviderRequest(exchange.source, {}, {"inputs": Place(path, before=before, after=after)}, streams=changes)


def _find(value: Any, wanted: Any) -> Path:
    """The keys under which `value` holds what is wanted, or a text with it."""
    if value == wanted or (isinstance(value, str) and isinstance(wanted, str) and wanted in value):
        return ()
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        try:
            return (key, *_find(member, wanted))
        except LookupError:
            continue
    raise LookupError(wanted)


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


_ROWS: dict[str, ProviderRequest] = {
    **openai_requests.ROWS,
    **hosted_requests.ROWS,
    **aws_requests.ROWS,
    **own_server_requests.ROWS,
}
PROVIDER_REQUESTS = {name: _ROWS.get(name) or _row(exchange) for name, exchange in EXCHANGES.items()}

"""The command `predict`: a model's response, streamed or whole.

Only the response goes to stdout; reasoning, tool calls and usage go to stderr.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any
from urllib.parse import quote

import typer

from opensearch_ml_stream.client.errors import SidecarError
from opensearch_ml_stream.client.response_chunks import Chunk, ChunkReader
from opensearch_ml_stream.plugin.cli.command_errors import RequestFailed, WrongUsage
from opensearch_ml_stream.plugin.cli.options import ModelId, read_pairs
from opensearch_ml_stream.plugin.cli.printing import print_json, print_json_line, print_note, print_text
from opensearch_ml_stream.plugin.cli.sidecar_api import SidecarAPI, open_api
from opensearch_ml_stream.plugin.cli.sidecar_options import SidecarOptions, takes_sidecar


@takes_sidecar
def predict(
    sidecar: SidecarOptions,
    model_id: ModelId,
    text: Annotated[str, typer.Argument(help="What to ask, as the parameter `inputs`; - reads stdin.")] = "",
    stream: Annotated[bool, typer.Option("--stream", help="Show the response as it arrives.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the objects that the sidecar sends.")] = False,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A further parameter.")] = None,
) -> None:
    """Ask a model."""
    question = sys.stdin.read() if text == "-" else text
    parameters = {**({"inputs": question} if question else {}), **read_pairs("--set", set_)}
    if not parameters:
        raise WrongUsage("Say what to ask: the question, - for stdin, or --set name=value")
    with open_api(sidecar) as api:
        if not stream:
            _show_whole(api, model_id, parameters, json=json)
        elif json:
            for chunk in read_chunks(api.predict_stream(model_id, parameters)):
                print_json_line(chunk.raw)
        else:
            show_stream(read_chunks(api.predict_stream(model_id, parameters)))


def read_chunks(body: Iterable[bytes]) -> Iterator[Chunk]:
    """Yield the chunks of a body; after those before an error in it, raise RequestFailed."""
    reader = ChunkReader()
    try:
        for data in body:
            yield from reader.feed(data)
        yield from reader.close()
    except SidecarError as error:
        raise RequestFailed(error.status or 424, error.reason) from error


def show_stream(chunks: Iterable[Chunk]) -> None:
    """Print a stream's text as it arrives; on stderr its reasoning (dim), tool calls and usage."""
    calls: dict[int, dict[str, str]] = {}
    shown = ""
    try:
        for chunk in chunks:
            if chunk.reasoning:
                print_note(chunk.reasoning, end="", is_dim=True)
            if chunk.text:
                print_text(chunk.text, end="")
                shown = chunk.text
            _collect(calls, chunk.tool_calls)
            if chunk.is_last:
                _end_line(shown)
                shown = ""
                _show_ending(chunk, calls)
    finally:
        _end_line(shown)


def _show_whole(api: SidecarAPI, model_id: str, parameters: Mapping[str, Any], *, json: bool) -> None:
    response = api.call("POST", f"/models/{quote(model_id, safe='')}/_predict", {"parameters": parameters})
    text = None if json else _chat_text(response)
    if not json:
        _show_warnings(response.pop("warnings", ()))
    if text is None:
        print_json(response)
    else:
        print_text(text)


def _chat_text(response: Mapping[str, Any]) -> str | None:
    """Return the text of a chat response as the common providers send it; None for embeddings and the like."""
    try:
        data = response["inference_results"][0]["output"][0]["dataAsMap"]
    except (LookupError, TypeError):
        return None
    for path in (("response",), ("choices", 0, "message", "content"), ("content", 0, "text")):
        member: Any = data
        try:
            for step in path:
                member = member[step]
        except (LookupError, TypeError):
            continue
        if isinstance(member, str):
            return member
    return None


def _collect(calls: dict[int, dict[str, str]], fragments: Iterable[Mapping[str, Any]]) -> None:
    for fragment in fragments:
        call = calls.setdefault(fragment.get("index", 0), {"name": "", "arguments": ""})
        call["name"] += fragment.get("name") or ""
        call["arguments"] += fragment.get("arguments") or ""


def _show_warnings(warnings: Iterable[str]) -> None:
    for warning in warnings:
        print_note(f"warning: {warning}")


def _show_ending(last: Chunk, calls: Mapping[int, Mapping[str, str]]) -> None:
    if "inference_results" in last.raw:
        _show_warnings(last.raw["inference_results"][0]["output"][0]["dataAsMap"].get("warnings", ()))
    for call in calls.values():
        print_note(f"tool call: {call['name']}({call['arguments']})")
    if last.finish_reason not in (None, "stop", "tool_calls"):
        print_note(f"the model stopped early: {last.finish_reason}")
    if sys.stderr.isatty():
        usage = last.usage or {}
        counts = [f"{usage[key]} {key.replace('_', ' ')}" for key in ("input_tokens", "output_tokens") if key in usage]
        print_note(", ".join([last.model or "", *counts]).strip(", "), is_dim=True)


def _end_line(shown: str) -> None:
    """Print a line break if the text shown before does not end with one."""
    if shown and not shown.endswith("\n"):
        print_text()

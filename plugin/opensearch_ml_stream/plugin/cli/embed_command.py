"""The command `embed`: the embeddings of texts, one line each."""

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote

import typer

from opensearch_ml_stream.plugin.cli.command_errors import CommandFailed, RequestFailed, WrongUsage
from opensearch_ml_stream.plugin.cli.options import ModelId
from opensearch_ml_stream.plugin.cli.printing import print_json, print_json_line
from opensearch_ml_stream.plugin.cli.sidecar_api import open_api
from opensearch_ml_stream.plugin.cli.sidecar_options import SidecarOptions, takes_sidecar


@takes_sidecar
def embed(
    sidecar: SidecarOptions,
    model_id: ModelId,
    texts: Annotated[list[str], typer.Argument(metavar="TEXT...", help="What to embed; - reads stdin, a text a line.")],
    json: Annotated[bool, typer.Option("--json", help="Print the object that the sidecar sends.")] = False,
) -> None:
    """Print the embedding of each text: a JSON array of numbers a line."""
    documents = [line for text in texts for line in (sys.stdin.read().splitlines() if text == "-" else [text])]
    if not documents:
        raise WrongUsage("Say what to embed: standard input has no line")
    path = f"/models/{quote(model_id, safe='')}/_predict"
    with open_api(sidecar) as api:
        try:
            response = api.call("POST", path, {"text_docs": documents})
        except RequestFailed as error:
            if "placeholder not filled" in str(error):  # a chat's template has no place for texts
                raise CommandFailed(f"{error}; is it a model for embeddings?") from None
            raise
    if json:
        print_json(response)
        return
    for embedding in _embeddings(response, len(documents)):
        print_json_line(embedding)


def _embeddings(response: Mapping[str, Any], texts: int) -> Sequence[Any]:
    """Return the embeddings of a response, one for each text. CommandFailed for any other number."""
    try:
        found = [output["data"] for result in response["inference_results"] for output in result["output"]]
    except (LookupError, TypeError):
        found = []
    if not found:
        raise CommandFailed("The model's response holds no embeddings; --json shows it")
    if len(found) != texts:
        raise CommandFailed(f"The model's response holds {len(found)} embeddings for {texts} texts; --json shows it")
    return found

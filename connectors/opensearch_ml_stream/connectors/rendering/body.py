"""What still happens to a rendered request body before it is sent, in ML Commons' order.

`input_processors`, then structured output, then the empty sections of Nova's template.
"""

from collections.abc import Mapping
from dataclasses import replace

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.processors.chain import compile_processors, process_text
from opensearch_ml_stream.connectors.rendering.action import ProviderRequest
from opensearch_ml_stream.connectors.rendering.nova import clean_nova_body
from opensearch_ml_stream.connectors.rendering.structured_output import apply_structured_output

INPUT_PROCESSORS = "input_processors"


def finish_body(
    action: Action,
    connector_parameters: Mapping[str, str],
    request_parameters: Mapping[str, str],
    sent: ProviderRequest,
) -> ProviderRequest:
    """The request with its final body; the same object if nothing applies. InvalidRequest says what does not fit."""
    everything = {**connector_parameters, **request_parameters}
    charset = everything.get("charset", "utf-8")
    before = sent.body.decode(charset)
    text = before
    if text and everything.get(INPUT_PROCESSORS):
        text = process_text(compile_processors(everything[INPUT_PROCESSORS], INPUT_PROCESSORS), text)
    text = apply_structured_output(action, request_parameters, text)
    text = clean_nova_body(connector_parameters, text)
    if text == before:
        return sent
    try:
        return replace(sent, body=text.encode(charset))
    except UnicodeEncodeError:
        raise InvalidRequest("The parameters hold text that the connector's charset cannot encode") from None

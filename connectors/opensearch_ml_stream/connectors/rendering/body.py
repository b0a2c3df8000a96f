"""Edit a rendered body, in ML Commons' order: input processors, structured output, Nova's empty sections."""

from collections.abc import Mapping

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.processors.chain import compile_processors, process_text
from opensearch_ml_stream.connectors.rendering.nova import NOVA_EMBEDDINGS, clean_nova_body
from opensearch_ml_stream.connectors.rendering.structured_output import apply_structured_output

INPUT_PROCESSORS = "input_processors"


def may_edit_body(action: Action, connector_parameters: Mapping[str, str]) -> bool:
    """Return whether `edit_body` can change a body of a request that names no input processors itself."""
    return (
        INPUT_PROCESSORS in connector_parameters
        or action.supports_structured_output
        or connector_parameters.get("model") == NOVA_EMBEDDINGS
    )


def edit_body(
    action: Action, connector_parameters: Mapping[str, str], request_parameters: Mapping[str, str], body: str
) -> str:
    """Return the edited body. InvalidRequest if an edit is wrongly configured or does not fit the body."""
    processors = request_parameters.get(INPUT_PROCESSORS, connector_parameters.get(INPUT_PROCESSORS))
    if body and processors:
        body = process_text(compile_processors(processors, INPUT_PROCESSORS), body)
    body = apply_structured_output(action, request_parameters, body)
    return clean_nova_body(connector_parameters, body)

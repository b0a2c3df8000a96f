"""Body edits: change a rendered request body, in ML Commons' order.

Input processors first, then structured output, then the removal of empty sections for Nova's embeddings.
"""

from collections.abc import Mapping

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.processors.chain import compile_processors
from opensearch_ml_stream.connectors.rendering.nova_embeddings import NOVA_EMBEDDINGS, clean_nova_body
from opensearch_ml_stream.connectors.rendering.structured_output import apply_structured_output

INPUT_PROCESSORS = "input_processors"


def may_edit_body(action: Action, connector_parameters: Mapping[str, str]) -> bool:
    """Return whether the connector by itself may require edits.

    A request that sends `input_processors` needs edits in any case.
    """
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
        body = compile_processors(processors, INPUT_PROCESSORS).run_on_text(body)
    body = apply_structured_output(action, request_parameters, body)
    return clean_nova_body(connector_parameters, body)

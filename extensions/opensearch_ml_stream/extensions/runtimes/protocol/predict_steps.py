"""The calls of a runtime for a predict input of any kind."""

from collections.abc import Mapping, Sequence

from opensearch_ml_stream.connectors.predict.inputs import (
    PredictInput,
    QuestionAnsweringInput,
    RemoteInput,
    TextSimilarityInput,
)
from opensearch_ml_stream.connectors.predict.pre_process import Step, split_texts, step_size
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_request import QUERY_TEXT, TEXT_DOCS


def predict_steps(connector_parameters: Mapping[str, str], predict_input: PredictInput) -> list[Step]:
    """Return the calls: a runtime takes the fields of any input as parameters of the same names."""
    own = predict_input.parameters
    if isinstance(predict_input, RemoteInput):
        return [Step(own)]
    if isinstance(predict_input, QuestionAnsweringInput):
        return [Step({**own, "question": predict_input.question, "context": predict_input.context})]
    texts = predict_input.text_docs
    if isinstance(predict_input, TextSimilarityInput):
        return [Step({**own, QUERY_TEXT: predict_input.query_text, TEXT_DOCS: _json_array(texts)}, len(texts))]
    groups = split_texts(texts, step_size(connector_parameters))
    return [Step({**own, TEXT_DOCS: _json_array(group)}, len(group)) for group in groups]


def _json_array(texts: Sequence[str]) -> JsonText:
    return JsonText(jsontext.dumps(list(texts)))

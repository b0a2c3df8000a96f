"""What AWS offers besides Bedrock: language detection, text recognition, own models on SageMaker."""

import json
from typing import Any

from integration_tests.interop.provider_dialects.dialect import mapped, vector
from integration_tests.interop.public_blueprints.aws_text import BOTH
from integration_tests.interop.public_blueprints.aws_vectors import DOCS, PICTURE, TEXTS, VECTORS, functions
from integration_tests.interop.public_blueprints.body import (
    KEYS,
    ROLE,
    PublicBlueprint,
    calls,
    commented,
    connector,
    row,
    tensors,
)

from tests.providers.recorded_streams import QUESTION


def _aws(
    name: str, service: str, template: str, own: dict[str, Any], parameters: Any, sent: Any
) -> list[PublicBlueprint]:
    """Comprehend and Textract: one URL, the operation is a header."""
    response = {"Languages": [{"LanguageCode": "en", "Score": 0.9}]}
    body = connector(
        name,
        "https://${parameters.service_name}.${parameters.region}.amazonaws.com",
        template,
        {"region": "us-east-1", "service_name": service, **own},
        KEYS,
        protocol="aws_sigv4",
        headers={"X-Amz-Target": "${parameters.api}", "content-type": "application/x-amz-json-1.1"},
    )
    headers = {"X-Amz-Target": own["api"], "content-type": "application/x-amz-json-1.1"}
    return row(name, body, calls("/", sent, response, {"parameters": parameters}, aws=service, headers=headers), BOTH)


_COMPREHEND = {"api_version": "20171127", "response_filter": "$"}
_SAGEMAKER = {"region": "us-east-1", "service_name": "sagemaker"}
_RUNTIME = "https://runtime.sagemaker.us-east-1.amazonaws.com/endpoints"
_TRANSFORM = {
    "action_type": "batch_predict",
    "method": "POST",
    "headers": {"content-type": "application/json"},
    "url": "https://api.sagemaker.us-east-1.amazonaws.com/CreateTransformJob",
    "request_body": '{ "BatchStrategy": "${parameters.BatchStrategy}", "ModelName": "${parameters.ModelName}" }',
}
_HIGHLIGHT_PRE = """
    if (params.question != null && params.context != null) {
        return '{"parameters":{"question":"' + params.question + '","context":"' + params.context + '"}}';
    }
    if (params.inputs != null) { return '{"parameters":{"inputs":' + params.inputs.toString() + '}}'; }
    throw new IllegalArgumentException("question and context, or inputs");"""


def _sagemaker(name: str, url: str, template: str, dialect: Any, **more: Any) -> list[PublicBlueprint]:
    parameters = {**_SAGEMAKER, **more.pop("parameters", {})}
    rows: dict[str, Any] = {key: more.pop(key) for key in ("stream_says",) if key in more}
    body = connector(name, url, template, parameters, KEYS, protocol="aws_sigv4", **more)
    return row(name, body, dialect, **rows)


def _colpali() -> list[PublicBlueprint]:
    """A model with its connector inline."""
    queries = {"queries": ["hello"]}
    sagemaker = connector(
        "colpali", f"{_RUNTIME}/{{{{endpoint_name}}}}/invocations", "${parameters.inputs}", _SAGEMAKER, KEYS,
        protocol="aws_sigv4",
    )  # fmt: skip
    response = {"query_embeddings": [[vector("hello")]]}
    dialect = calls(
        "/endpoints/my-endpoint/invocations", queries, response, {"parameters": {"inputs": queries}}, aws="sagemaker"
    )
    rows = []
    refusals: tuple[tuple[dict[str, str], str | None], ...] = ((KEYS, None), (ROLE, "Missing credential"))
    for credential, refused in refusals:
        model = {"name": "colpali", "function_name": "remote", "connector": {**sagemaker, "credential": credential}}
        kind = "" if refused is None else " with a role"
        text = json.dumps(model, indent=2)
        # Nothing tells from outside that this one makes vectors; the fake refuses its stream, as a container may.
        rows.append(PublicBlueprint(f"colpali{kind}", text, dialect, True, refused, stream_says="path is"))
    return rows


BLUEPRINTS: list[PublicBlueprint] = [
    *_aws(
        "comprehend language",
        "comprehend",
        '{ "Text": "${parameters.Text}"}',
        {**_COMPREHEND, "api": "Comprehend_20171127.DetectDominantLanguage"},
        {"Text": QUESTION},
        {"Text": QUESTION},
    ),
    *_aws(
        "comprehend entities",
        "comprehend",
        '{ "Text": "${parameters.Text}", "LanguageCode": "${parameters.LanguageCode}"}',
        {**_COMPREHEND, "api": "Comprehend_20171127.DetectEntities"},
        {"Text": QUESTION, "LanguageCode": "en"},
        {"Text": QUESTION, "LanguageCode": "en"},
    ),
    *_aws(
        "textract",
        "textract",
        '{ "Document": { "Bytes": "${parameters.bytes}" } }',
        {"api": "Textract.DetectDocumentText"},
        {"bytes": PICTURE},
        {"Document": {"Bytes": PICTURE}},
    ),
    *_sagemaker(
        "sagemaker batch",
        f"{_RUNTIME}/OpenSearch-sagemaker-060124023703/invocations",
        "${parameters.input}",
        calls(
            "/endpoints/OpenSearch-sagemaker-060124023703/invocations",
            TEXTS,
            VECTORS,
            DOCS,
            tensors(*VECTORS),
            aws="sagemaker",
        ),
        further_actions=[_TRANSFORM],
        parameters={"DataProcessing": {"InputFilter": "$.text"}, "ModelName": "m", "BatchStrategy": "SingleRecord"},
        **functions("default.embedding"),
    ),
    *commented(
        _sagemaker(
            "sagemaker",
            "<PLEASE ADD YOUR Sagemaker MODEL INFERENCE ENDPOINT URL>",
            "${parameters.input}",
            calls("/invocations", TEXTS, VECTORS, DOCS, tensors(*VECTORS), aws="sagemaker"),
            **functions("default.embedding"),
        )
    ),
    *_colpali(),
    *_sagemaker(
        "semantic highlighter",
        "https://runtime.sagemaker.${parameters.region}.amazonaws.com/endpoints/${parameters.model}/invocations",
        '{ "question": "${parameters.question:-}", "context": "${parameters.context:-}", '
        '"inputs": ${parameters.inputs:-[]} }',
        calls(
            "/endpoints/highlighter/invocations",
            {"question": QUESTION, "context": "It is 42.", "inputs": []},
            {"highlights": [{"start": 0, "end": 9}]},
            {"parameters": {"question": QUESTION, "context": "It is 42."}},
            mapped({"highlights": [{"start": 0, "end": 9}]}),
            aws="sagemaker",
        ),
        parameters={"model": "highlighter"},
        pre=_HIGHLIGHT_PRE,
    ),
]

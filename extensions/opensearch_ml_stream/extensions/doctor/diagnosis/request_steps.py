"""The steps before a call: the documents, the template filled with the parameters, and how the stream is turned on."""

import re
from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.connectors.rendering.template import UnfilledPlaceholders
from opensearch_ml_stream.connectors.stream_spec import Enable, Streaming
from opensearch_ml_stream.connectors.stream_spec_lookup import choose_spec
from opensearch_ml_stream.extensions.doctor.diagnosis.step_log import StepLog
from opensearch_ml_stream.plugin.credentials.redaction import SHORTEST, Redactor
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel

MAX_SHOWN_CHARACTERS = 16 * 1024  # of a rendered body
MAX_SHOWN_NAMES = 20
HIDDEN = "***"
_TEXT = "inputs"  # the parameter that a text to ask comes in

_SECRET_NAMES = re.compile(r"authorization|cookie|token|secret|password|signature|credential|key", re.IGNORECASE)


def describe_document(model: CompiledModel) -> dict[str, Any]:
    """Return what the documents of a model say about its calls; of the credential only its names."""
    connector, config = model.connector, model.connector.client_config
    return {
        "model": model.definition.name,
        "connector": connector.name,
        "connector_id": model.definition.connector_id,
        "protocol": connector.protocol,
        "credential": sorted(connector.credential),
        "parameters": sorted(connector.parameters),
        "connection_timeout": config.connection_timeout,
        "read_timeout": config.read_timeout,
        "max_retry_times": config.max_retry_times,
    }


def with_text(model: CompiledModel, parameters: Mapping[str, str]) -> Mapping[str, str]:
    """Return the parameters with the text `inputs` where the templates have a place for one, as in a V2 request.

    They stay as they are if `inputs` is a parameter of the templates, or these have no other for a text.
    """
    if model.own_requests is not None or _TEXT not in parameters:
        return parameters
    try:
        inputs = model.inputs
    except InvalidRequest:  # it has no predict action, which the step `template` tells
        return parameters
    filled = {} if _TEXT in inputs.names else inputs.fill_text(parameters[_TEXT])
    given = {name: value for name, value in parameters.items() if name != _TEXT}
    return {**filled, **given} if filled else parameters


def prepare(model: CompiledModel, parameters: Mapping[str, str], log: StepLog) -> tuple[ProviderRequest, Streaming]:
    """Take the steps `template` and `spec`; return the request, its stream turned on, and how to read the response.

    Raises what a prediction would raise, when the step that it fails is noted.
    """
    with log.timed("template") as found:
        action = model.action()
        given, parameters = parameters, with_text(model, parameters)
        try:
            request = action.render(parameters)
        except UnfilledPlaceholders as error:
            missing = ", ".join(error.names[:MAX_SHOWN_NAMES])
            found.advice = (
                f"Give these parameters with the request (--set NAME=VALUE), or defaults in the connector's: {missing}"
            )
            raise
        found.details = describe_request(request, model)
        if parameters is not given:
            found.details["parameters"] = dict(parameters)
        found.summary = f"{request.method} {_shown_url(request, model.redactor)}, {len(request.body)} bytes of body"
    with log.timed("spec") as found:
        spec = model.spec(parameters)
        if model.own_requests is not None:
            reason = f"the model is a {spec.name} of this sidecar"
        else:
            interface = parameters.get("_llm_interface")
            asked = {} if interface is None else {"_llm_interface": interface}
            reason = choose_spec(model.connector, model.connector.action(), asked, model.providers).reason
        request = action.render(parameters, spec)
        found.details = {"spec": spec.name, "reason": reason, "turned_on_by": _changes(spec.enable)}
        found.details |= {"url": _shown_url(request, model.redactor)}
        found.summary = f"{spec.name}: {reason}"
    return request, spec


def describe_request(request: ProviderRequest, model: CompiledModel) -> dict[str, Any]:
    """Return a rendered request for people, without its secrets; the body is cut at MAX_SHOWN_CHARACTERS."""
    redactor = model.redactor
    templates = {name.lower(): value for name, value in model.connector.action().headers.items()}
    body = request.body.decode(request.charset, "replace")
    shown = redactor.hide(body[:MAX_SHOWN_CHARACTERS], SHORTEST)
    return {
        "method": request.method,
        "url": _shown_url(request, redactor),
        "headers": {
            name: _shown_header(name, value, templates.get(name.lower(), ""), redactor)
            for name, value in request.headers.items()
        },
        "body": shown if len(body) <= MAX_SHOWN_CHARACTERS else f"{shown}... ({len(body)} characters)",
        "body_bytes": len(request.body),
    }


def _shown_url(request: ProviderRequest, redactor: Redactor) -> str:
    """Return the URL; what a parameter of the query that is named as a secret holds is hidden."""
    path, mark, query = request.url.partition("?")
    shown: list[str] = []
    for pair in query.split("&"):
        name, equals, value = pair.partition("=")
        shown.append(name + equals + (HIDDEN if value and _SECRET_NAMES.search(name) else value))
    return redactor.hide(path + mark + "&".join(shown), SHORTEST)


def _shown_header(name: str, value: str, template: str, redactor: Redactor) -> str:
    """Return a header's value; the template itself where it names a credential, which tells more than asterisks."""
    if "${credential." in template:
        return template
    return HIDDEN if _SECRET_NAMES.search(name) else redactor.hide(value, SHORTEST)


def _changes(enable: Enable) -> dict[str, Any]:
    """Return the changes that turn a stream on, without those that there are not."""
    changes = {
        "body": {**enable.body, **enable.inner_body},
        "without": list(enable.drop),
        "url": [f"{old} -> {new}" for old, new in enable.url],
        "query": dict(enable.query),
        "headers": dict(enable.headers),
    }
    return {name: value for name, value in changes.items() if value}

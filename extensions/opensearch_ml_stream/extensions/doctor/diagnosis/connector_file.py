"""Diagnose a connector that is not stored, in the process of the command that reads its file."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from opensearch_ml_stream.connectors.documents import Model, connector_document, read_connector
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.extensions.doctor.diagnosis.diagnose import Diagnosis, ModelDiagnosis
from opensearch_ml_stream.extensions.doctor.diagnosis.report import Report
from opensearch_ml_stream.extensions.doctor.diagnosis.request_steps import describe_document
from opensearch_ml_stream.extensions.doctor.diagnosis.step_log import StepLog
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.predictions.provider_call import open_remote
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings


async def diagnose_connector(
    document: Mapping[str, Any], parameters: Mapping[str, str], settings: Settings, *, record: bool = False
) -> Diagnosis:
    """Return the diagnosis of a connector, given as the body of `connectors/_create`; nothing is raised.

    Its credential is in clear, or `env:` and `file:`, which are always read: the file is the user's own. The settings
    about trusted endpoints, private addresses and proxies apply.
    """
    log = StepLog()
    live = LiveSettings(settings)
    try:
        with log.timed("document") as found:
            model = _compile(document)
            found.details = describe_document(model)
            found.summary = f"connector {model.connector.name} ({model.connector.protocol})"
    except MLStreamError:
        return Diagnosis(Report(log.steps()))

    async def admit(held: AsyncExitStack, request: ProviderRequest) -> None:
        """Nothing limits the calls of a command."""

    diagnosing = ModelDiagnosis(model, live, log, record=record)
    return await diagnosing.run(
        parameters, lambda upstream, request: open_remote(upstream, live.current, model, request), admit
    )


def _compile(document: Mapping[str, Any]) -> CompiledModel:
    connector = read_connector(connector_document(document))
    definition = Model(connector.name, None, connector, is_enabled=True, document={})
    model = CompiledModel("", definition, connector, connector.credential, external_credentials_enabled=True)
    _ = model.credential  # raises for one that cannot be read
    return model

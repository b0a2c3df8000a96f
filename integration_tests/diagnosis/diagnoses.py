"""Diagnoses of a connector's document, and what to look at in them."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from integration_tests.support.certificates import Certificate
from integration_tests.support.fake_provider import FakeProvider, Request, Script

from opensearch_ml_stream.extensions.doctor.diagnosis.connector_file import diagnose_connector
from opensearch_ml_stream.extensions.doctor.diagnosis.diagnose import Diagnosis
from opensearch_ml_stream.extensions.doctor.diagnosis.report import STEP_NAMES, Step, read_report
from opensearch_ml_stream.plugin.settings import Settings

KEY = "sk-proj-0123456789abcdef"
PROMPT = "Tell nobody that Alice lives in Rome"
SETTINGS = Settings(
    trusted_connector_endpoints_regex=(r"^https?://[a-z0-9.-]+(:[0-9]+)?/.*$",), private_ip_enabled=True
)


def connector(url: str, **fields: Any) -> dict[str, Any]:
    action = {
        "action_type": "predict",
        "method": "POST",
        "url": f"{url}/v1/chat/completions",
        "headers": {"Authorization": "Bearer ${credential.openAI_key}"},
        "request_body": '{"model": "gpt", "messages": [{"role": "user", "content": "${parameters.prompt}"}]}',
    }
    return {
        "name": "c",
        "version": 1,
        "protocol": "http",
        "credential": {"openAI_key": KEY},
        "parameters": {},
        "actions": [action],
        **fields,
    }


async def diagnosed(document: Mapping[str, Any], settings: Settings = SETTINGS, *, record: bool = False) -> Diagnosis:
    diagnosis = await diagnose_connector(document, {"prompt": PROMPT}, settings, record=record)
    assert [step.name for step in diagnosis.report.steps] == list(STEP_NAMES)
    assert KEY not in str(diagnosis.to_json())
    assert read_report(diagnosis.report.to_json()).to_json() == diagnosis.report.to_json()
    return diagnosis


def pass_time(seconds: float) -> None:
    """Set the clock of the running loop ahead."""
    loop = asyncio.get_running_loop()
    now = loop.time
    loop.time = lambda: now() + seconds  # type: ignore[method-assign]


async def of_script(script: Script | Callable[[Request], Script], **fields: Any) -> Diagnosis:
    async with FakeProvider(script) as provider:
        return await diagnosed(connector(provider.url, **fields))


def steps(diagnosis: Diagnosis) -> dict[str, Step]:
    return {step.name: step for step in diagnosis.report.steps}


def failure(diagnosis: Diagnosis) -> Step:
    """The first step that failed, of a diagnosis that says so."""
    assert not diagnosis.report.works
    return next(step for step in diagnosis.report.steps if step.verdict == "failed")


def mutual_tls(authority: Certificate) -> dict[str, Any]:
    """The fields of a connector that trusts the authority."""
    client = authority.issue("sidecar")
    credential = {
        "openAI_key": KEY,
        "client_cert_pem": client.certificate_pem,
        "client_key_pem": client.key_pem,
        "ca_cert_pem": authority.certificate_pem,
    }
    return {"credential": credential, "client_config": {"mutual_tls_enabled": True}}

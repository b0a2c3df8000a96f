"""The command `doctor`: where a stream is held up, between its provider and whoever reads it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic, sleep
from typing import Annotated, Any

import typer

from opensearch_ml_stream.extensions.doctor.cli.diagnosis_target import (
    ConnectorFile,
    DiagnosisTarget,
    Parameters,
    Text,
    diagnose,
    read_target,
    report_of,
)
from opensearch_ml_stream.extensions.doctor.cli.path_comparison import (
    Finding,
    PathTimeline,
    Place,
    WireFormat,
    compare,
    merge,
)
from opensearch_ml_stream.extensions.doctor.cli.path_measurement import PathMeter, count_requests
from opensearch_ml_stream.extensions.doctor.cli.report_printing import ReportPrinter, advice_of
from opensearch_ml_stream.extensions.doctor.diagnosis.report import Report, StreamTimeline
from opensearch_ml_stream.plugin.cli.command_errors import WrongUsage
from opensearch_ml_stream.plugin.cli.login import find_login
from opensearch_ml_stream.plugin.cli.options import Config, ModelOrText
from opensearch_ml_stream.plugin.cli.printing import print_json, waiting
from opensearch_ml_stream.plugin.cli.sidecar_api import SidecarAPI, open_client
from opensearch_ml_stream.plugin.cli.sidecar_options import SidecarOptions, takes_sidecar
from opensearch_ml_stream.plugin.cli.sidecar_url import sidecar_url

_FORMATS: tuple[WireFormat, ...] = ("SSE", "NDJSON")
_LATE_COUNT_SECONDS = 2.0  # a request is counted when it ends; after a cut the sidecar learns that from the proxy
_COUNT_PAUSE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class _Paths:
    """How the same call arrived from the provider, the sidecar and a proxy, and the findings about it."""

    provider: PathTimeline
    measured: Sequence[PathTimeline] = ()
    findings: Sequence[Finding] = field(default=())


@takes_sidecar
def doctor(
    sidecar: SidecarOptions,
    model_or_text: ModelOrText = None,
    text: Text = None,
    connector: ConnectorFile = None,
    through: Annotated[
        str | None, typer.Option("--through", metavar="URL", help="A proxy or load balancer before the sidecar.")
    ] = None,
    config: Config = None,
    json: Annotated[bool, typer.Option("--json", help="Print all that was found, as JSON.")] = False,
    set_: Parameters = None,
) -> None:
    """Find out where a stream is held up. Each path is measured by a call, which the provider charges for."""
    target = read_target((model_or_text, text), connector, set_)
    urls = _urls(sidecar, through, target)
    report = report_of(diagnose(target, sidecar, config, record=False))
    paths = None
    if report.works and report.stream is not None and target.model_id is not None:
        with waiting("calling the model through the sidecar" + ("" if through is None else f" and {through}")):
            parameters = report.parameters or target.parameters
            paths = _measure(target.model_id, parameters, sidecar, urls, report.stream)
    findings = () if paths is None else paths.findings
    works = report.works and all(finding.verdict != "failed" for finding in findings)
    advice = advice_of(report, findings, urls)
    if json:
        print_json(_document(report, paths, works, advice))
    else:
        printer = ReportPrinter()
        printer.steps(report)
        if paths is not None:
            printer.paths(paths.provider, paths.measured, urls)
            printer.findings(findings, urls)
        printer.conclusion(works, advice, _note(report, target, urls))
    raise typer.Exit(0 if works else 1)


def _urls(sidecar: SidecarOptions, through: str | None, target: DiagnosisTarget) -> dict[Place, str]:
    """Return the URLs of the sidecar and the proxy. WrongUsage for an invalid URL, or one given with --connector."""
    if target.model_id is None:
        if through is not None:
            raise WrongUsage("--through needs the id of a model: a connector's file is called without any sidecar")
        return {}
    urls: dict[Place, str] = {"sidecar": sidecar_url(sidecar.url)}
    if through is not None:
        try:
            urls["proxy"] = sidecar_url(through)
        except WrongUsage as error:
            raise WrongUsage(str(error).replace("--url", "--through", 1)) from None
    return urls


def _measure(
    model_id: str,
    parameters: Mapping[str, str],
    sidecar: SidecarOptions,
    urls: dict[Place, str],
    stream: StreamTimeline,
) -> _Paths:
    """Call the model by each path, in both formats, always with the login for the sidecar."""
    provider = _provider_timeline(stream)
    login = find_login(sidecar)
    before: dict[WireFormat, PathTimeline] = dict.fromkeys(_FORMATS, provider)
    measured: list[PathTimeline] = []
    findings: list[Finding] = []
    with open_client(login, sidecar) as direct:
        api = SidecarAPI(direct, login)
        for place, url in urls.items():
            with open_client(login, replace(sidecar, url=url)) as client:
                meter = PathMeter(client, place, model_id, parameters)
                for wire_format in _FORMATS:
                    timeline = _measure_and_count(meter, wire_format, api)
                    measured.append(timeline)
                    findings += compare(before[wire_format], timeline)
                    before[wire_format] = timeline
            if any(timeline.end != "complete" for timeline in before.values()):
                break  # places further away would show the same
    return _Paths(provider, tuple(measured), tuple(merge(findings)))


def _measure_and_count(meter: PathMeter, wire_format: WireFormat, api: SidecarAPI) -> PathTimeline:
    """Return how a response arrived, and how many requests the sidecar has had for it."""
    counted = count_requests(api, meter.model_id)
    timeline = meter.measure(wire_format)
    counted_after = count_requests(api, meter.model_id)
    waited_until = monotonic() + _LATE_COUNT_SECONDS
    while timeline.end == "cut" and counted_after == counted is not None and monotonic() < waited_until:
        sleep(_COUNT_PAUSE_SECONDS)
        counted_after = count_requests(api, meter.model_id)
    if counted is None or counted_after is None:
        return timeline
    return replace(timeline, received=counted_after - counted)


def _provider_timeline(stream: StreamTimeline) -> PathTimeline:
    end = max((*stream.chunks, *(milliseconds for milliseconds, _ in stream.reads)), default=0.0)
    return PathTimeline(
        "provider", None, "complete", end, stream.status, stream.headers, tuple(stream.reads), tuple(stream.chunks)
    )


def _note(report: Report, target: DiagnosisTarget, urls: dict[Place, str]) -> str:
    if target.model_id is None or not report.works:
        return "" if report.works else "The provider's stream does not work, so nothing behind it was looked at."
    return "" if "proxy" in urls else "A proxy or load balancer before the sidecar is looked at with --through URL."


def _document(report: Report, paths: _Paths | None, works: bool, advice: Sequence[str]) -> dict[str, Any]:
    document: dict[str, Any] = {**report.to_json(), "works": works}
    if paths is not None:
        document["paths"] = [timeline.to_json() for timeline in paths.measured]
        document["findings"] = [finding.to_json() for finding in paths.findings]
    return {**document, "advice": list(advice)}

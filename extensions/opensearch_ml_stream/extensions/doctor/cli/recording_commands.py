"""The commands `record`, which keeps a provider's stream in a file, and `replay`, a provider that plays it."""

import math
import threading
from pathlib import Path
from typing import Annotated

import typer

from opensearch_ml_stream.extensions.doctor.cli.diagnosis_target import (
    ConnectorFile,
    Parameters,
    Text,
    diagnose,
    read_target,
    report_of,
)
from opensearch_ml_stream.extensions.doctor.cli.replay_provider import replay_provider
from opensearch_ml_stream.extensions.doctor.diagnosis.recording import (
    MAX_FILE_BYTES,
    Recording,
    read_recording,
    read_recording_file,
)
from opensearch_ml_stream.extensions.doctor.diagnosis.report import Report
from opensearch_ml_stream.plugin.cli.command_errors import CommandFailed, WrongUsage
from opensearch_ml_stream.plugin.cli.options import Config, ModelOrText
from opensearch_ml_stream.plugin.cli.printing import print_note, print_text
from opensearch_ml_stream.plugin.cli.sidecar_options import SidecarOptions, takes_sidecar

_MAX_PORT = 65535


@takes_sidecar
def record(
    sidecar: SidecarOptions,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The recording to write.")],
    model_or_text: ModelOrText = None,
    text: Text = None,
    connector: ConnectorFile = None,
    config: Config = None,
    set_: Parameters = None,
) -> None:
    """Keep a provider's stream in a file, without credentials and prompt."""
    target = read_target((model_or_text, text), connector, set_)
    if not file.parent.is_dir():
        raise WrongUsage(f"{file} cannot be written: there is no folder {file.parent}")
    diagnosis = diagnose(target, sidecar, config, record=True)
    report = report_of(diagnosis)
    if "recording" not in diagnosis:
        raise CommandFailed(f"Nothing was recorded: {_why_not(report, diagnosis.get('no_recording'))}")
    recording = read_recording(diagnosis["recording"])
    try:
        file.write_bytes(recording.to_file())
    except OSError as error:
        raise CommandFailed(f"{file} cannot be written ({error.strerror})") from error
    print_note(f"Recorded {_described(recording)} to {file}")


def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A recording, as `record` writes it.")],
    port: Annotated[int, typer.Option("--port", metavar="N", help="Port on 127.0.0.1; 0 takes any free one.")] = 0,
    speed: Annotated[
        float, typer.Option("--speed", metavar="X", help="How many times as fast; 0 is without any waiting.")
    ] = 1.0,
) -> None:
    """Be a provider that plays a recording for every POST, until Ctrl-C."""
    if not 0 <= port <= _MAX_PORT:
        raise WrongUsage(f"--port must be between 0 and {_MAX_PORT}")
    if not (math.isfinite(speed) and speed >= 0):
        raise WrongUsage("--speed must be 0 or a positive number")
    try:
        with file.open("rb") as opened:
            recording = read_recording_file(opened.read(MAX_FILE_BYTES + 1))
    except OSError as error:
        raise WrongUsage(f"{file} cannot be read ({error.strerror})") from error
    try:
        with replay_provider(recording, speed, port) as url:
            print_text(url)
            print_note(f"plays {_described(recording)} for every POST; Ctrl-C ends it")
            threading.Event().wait()
    except OSError as error:
        raise CommandFailed(f"Cannot listen on port {port} ({error.strerror})") from error


def _described(recording: Recording) -> str:
    seconds = recording.end_milliseconds / 1000
    ended = "" if recording.end == "complete" else ", with the broken connection at its end"
    return f"{len(recording.reads)} reads, {len(recording.body):,} bytes in {seconds:.1f} s{ended}"


def _why_not(report: Report, reason: str | None) -> str:
    failed = next((step for step in report.steps if step.verdict == "failed"), None)
    if failed is None:
        return reason or "no response came"
    return failed.summary + (f"; {failed.advice}" if failed.advice else "")

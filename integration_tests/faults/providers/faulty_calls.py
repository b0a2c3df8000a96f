"""Streamed predictions of providers that fail: what the client got, and what is left in the sidecar."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from integration_tests.support.sidecars import Sidecar
from integration_tests.support.worker_processes import resident_mib, sockets, worker_pids


@dataclass(frozen=True, slots=True)
class Outcome:
    """A response as its client got it: the text so far, and the reason of its error, "" for a good end."""

    status: int
    text: str
    reason: str


def outcome_of(response: httpx.Response) -> Outcome:
    """Fails unless the response is an error status, or a stream that ends with its one terminal object."""
    lines = [json.loads(line) for line in response.text.splitlines() if line]
    terminal = [line for line in lines if "error" in line or _data(line).get("is_last")]
    assert terminal == lines[-1:], response.text
    text = "".join(str(_data(line).get("response", "")) for line in lines if "error" not in line)
    error = lines[-1].get("error")
    if error is None:
        return Outcome(response.status_code, text, "")
    assert lines[-1]["status"] == 424, response.text
    if response.status_code != 200:
        assert (response.status_code, len(lines)) == (424, 1)
    assert error["reason"]
    return Outcome(response.status_code, text, error["reason"])


def _data(line: Mapping[str, Any]) -> Mapping[str, Any]:
    if "inference_results" not in line:
        return {}
    data: Mapping[str, Any] = line["inference_results"][0]["output"][0]["dataAsMap"]
    return data


def open_streams(sidecar: Sidecar) -> int:
    """How many streams run, by the sidecar's own count."""
    match = re.search(r"^mlstream_streams_open (\S+)$", sidecar.client.get("/metrics").text, re.MULTILINE)
    assert match is not None
    return int(float(match[1]))


def open_sockets(sidecar: Sidecar) -> int:
    return sum(map(sockets, worker_pids(sidecar)))


def memory_mib(sidecar: Sidecar) -> float:
    return sum(map(resident_mib, worker_pids(sidecar)))

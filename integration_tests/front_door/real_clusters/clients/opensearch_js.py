"""OpenSearch's client for JavaScript, with the options that Dashboards gives it: programs/dashboards.js in Node.js."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from integration_tests.front_door.real_clusters.compared_responses import headers_of_cluster
from integration_tests.support.npm_packages import installed_modules

_PROGRAM = Path(__file__).parent / "programs" / "dashboards.js"
_LIMIT_SECONDS = 100  # for all calls of one run of the program

Call = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Dashboards:
    """Dashboards' server, whose `opensearch.hosts` is `url`. `headers` are the caller's, that it passes on."""

    url: str
    headers: Mapping[str, str]
    ca: str | None = None
    compression: bool = False

    def run(self, calls: Sequence[Call]) -> list[dict[str, Any]]:
        """The results of the calls, in order: `status`, `body`, the cluster's `headers`; or `error` and `message`."""
        given = {"node": self.url, "headers": dict(self.headers), "ca": self.ca, "compression": self.compression}
        command = ["node", str(_PROGRAM), installed_modules("opensearch_js")]
        text = json.dumps({**given, "calls": calls})
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=_LIMIT_SECONDS)
        assert done.returncode == 0, done.stderr
        results: list[dict[str, Any]] = json.loads(done.stdout)
        return [result | {"headers": headers_of_cluster(result.get("headers", {}))} for result in results]

    def shows(self, method: str, path: str, body: str | None = None) -> dict[str, Any]:
        """What its Console shows of one request: `status` and the text `shown`."""
        [shown] = self.run([("console", {"method": method, "path": path, "body": body})])
        return shown

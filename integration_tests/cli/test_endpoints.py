"""A model server of one's own: from a refused connector to its first response, with the hints that are given."""

import re
import shlex
from pathlib import Path

from integration_tests.cli.commands import run_command
from integration_tests.support.background_provider import background_provider
from integration_tests.support.fake_provider import openai_stream
from integration_tests.support.sidecars import running_sidecar

DEFAULTS = {
    "plugins.ml_commons.trusted_connector_endpoints_regex": r'["^https://api\\.openai\\.com/.*$"]',
    "plugins.ml_commons.connector.private_ip_enabled": "false",
}


def test_the_hint_of_the_first_error_leads_to_a_response(tmp_path: Path) -> None:
    with (
        background_provider(openai_stream(["Hel", "lo"], 0.01)) as provider,
        running_sidecar(tmp_path, settings=DEFAULTS) as sidecar,
    ):
        command = "models create --blueprint openai-chat --credential openAI_key=x --set"
        create = (*command.split(), f"endpoint={provider.url}", "--url", sidecar.url)
        refused = run_command(*create)
        assert refused.returncode == 1
        hint = re.search(r"(endpoints allow .*) \(status 400\)", refused.stderr)
        assert hint is not None, refused.stderr
        allowed = run_command(*shlex.split(hint[1]))
        assert allowed.stdout == f"allowed: {provider.url}, which has a private address\n"
        assert "is true now, for this server alone" in allowed.stderr
        created = run_command(*create)
        assert created.returncode == 0, created.stderr
        tried = created.stderr.partition("predict ")[2]
        assert run_command("predict", *shlex.split(tried)).stdout == "Hello\n"
        listed = run_command("endpoints", "list", "--url", sidecar.url).stdout
        assert [line.split("\t")[1] for line in listed.splitlines()] == ["no", "yes"]
        assert run_command("endpoints", "remove", provider.url, "--url", sidecar.url).returncode == 0
        assert run_command(*create).returncode == 1

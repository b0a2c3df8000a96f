"""What callers may set of a connector's URL, and of headers that name a host or an account."""

import json
from pathlib import Path

import orjson
import pytest

from opensearch_ml_stream.connectors.documents import Action, connector_document, read_connector
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.caller_parameters import MODEL_NAMES, CallerParameters
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction, ProviderRequest
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from tests.counted_work import steps

KEY = {"key": "secret"}
BLUEPRINT = "${parameters.endpoint}/v1/${parameters.model}"
OWN = {"endpoint": "https://api.example.com", "model": "m"}
REGION = {"endpoint": "https://api.${parameters.region}.example.com", "region": "eu-1", "model": "m"}
NESTED = {"a": "${parameters.b.toString()}", "b": "1"}


def render(
    url: str,
    own: dict[str, str],
    request: dict[str, str],
    credential: dict[str, str] | None = None,
    headers: dict[str, str] | None = None,
) -> ProviderRequest:
    action = Action("PREDICT", "POST", url, headers=headers or {}, request_body="{}")
    credential = KEY if credential is None else credential
    return CompiledAction.compile(action, ConnectorParameters.compile(own), credential).render(request)


def refusal(
    url: str,
    own: dict[str, str],
    request: dict[str, str],
    credential: dict[str, str] | None = None,
    headers: dict[str, str] | None = None,
) -> str:
    with pytest.raises(InvalidRequest) as refused:
        render(url, own, request, credential, headers)
    reason = refused.value.reason
    assert "may not set" in reason
    assert not any(value in reason for value in request.values() if len(value) > 4)
    return reason


# What the connector gives a value


@pytest.mark.parametrize("credential", [KEY, {}], ids=["credential", "no credential"])
@pytest.mark.parametrize(
    ("url", "own", "request_", "names"),
    [
        (BLUEPRINT, OWN, {"endpoint": "https://evil.example"}, "[endpoint]"),
        (BLUEPRINT, OWN, {"endpoint": "http://api.example.com"}, "[endpoint]"),
        (BLUEPRINT, OWN, {"endpoint": "https://api.example.com:8443"}, "[endpoint]"),
        (BLUEPRINT, OWN, {"endpoint": "https://api.example.com.evil.example"}, "[endpoint]"),
        (BLUEPRINT, OWN, {"endpoint": "https://api.example.com@evil.example"}, "[endpoint]"),
        (BLUEPRINT, OWN, {"endpoint": "https://api.example.com/other"}, "[endpoint]"),
        (BLUEPRINT, OWN, {"endpoint": "https://api.example.com/v1/m#", "model": "m"}, "[endpoint]"),
        (BLUEPRINT, OWN, {"endpoint": "evil"}, "[endpoint]"),
        (BLUEPRINT, OWN, {"endpoint": ""}, "[endpoint]"),
        (BLUEPRINT, OWN, {"endpoint": "https://[::1"}, "[endpoint]"),
        (BLUEPRINT, OWN, {"endpoint": "https://evil.example", "model": "n"}, "[endpoint]"),
        (BLUEPRINT, {"endpoint": "${parameters.a}", "model": "m"}, {"endpoint": "https://h:99999"}, "[endpoint]"),
        (BLUEPRINT, REGION, {"region": "us-1"}, "[region]"),
        (BLUEPRINT, REGION, {"region": "evil.example/"}, "[region]"),
        (BLUEPRINT, REGION, {"region": "us-1", "endpoint": "https://evil.example"}, "[endpoint], [region]"),
        (BLUEPRINT, REGION, {"endpoint": "https://api.us-1.example.com"}, "[endpoint]"),
        ("https://${parameters.host}/v1", {"host": "h"}, {"host": "evil"}, "[host]"),
        ("https://x.${parameters.host}/v1", {"host": "h"}, {"host": "h/.."}, "[host]"),
        ("${parameters.scheme}://h/v1", {"scheme": "https"}, {"scheme": "http"}, "[scheme]"),
        ("https://h:${parameters.port}/v1", {"port": "80"}, {"port": "8080"}, "[port]"),
        ("https://h:80${parameters.more}/v1", {"more": ""}, {"more": "80"}, "[more]"),
        ("https://h${parameters.path}", {"path": "/v1"}, {"path": "/v2"}, "[path]"),
        ("https://h/${parameters.account}/x", {"account": "a"}, {"account": "b"}, "[account]"),
        ("https://h/x?org=${parameters.org}", {"org": "a"}, {"org": "b"}, "[org]"),
        ("https://h/${parameters.a}", NESTED, {"b": "2"}, "[b]"),
        ("https://h/${parameters.a}", NESTED, {"b.toString()": "2"}, "[b.toString()]"),
        # A model's name is settable in path and query only.
        ("https://${parameters.model}.example.com/v1", {"model": "m"}, {"model": "evil"}, "[model]"),
        ("https://h${parameters.model}", {"model": "/m"}, {"model": ".evil.example/m"}, "[model]"),
        ("https://h${parameters.model}", {"model": "/m"}, {"model": "@evil.example/m"}, "[model]"),
        ("https://h:80${parameters.model}", {"model": "/m"}, {"model": "80/m"}, "[model]"),
    ],
)  # fmt: skip
def test_no_request_sets_another_value_than_the_connectors(
    url: str, own: dict[str, str], request_: dict[str, str], names: str, credential: dict[str, str]
) -> None:
    assert f"may not set {names}:" in refusal(url, own, request_, credential)


@pytest.mark.parametrize("name", sorted(MODEL_NAMES))
def test_a_request_names_the_model_in_path_and_query(name: str) -> None:
    url = f"https://h/models/${{parameters.{name}}}/x?deployment=${{parameters.{name}}}"
    request = render(url, {name: "m"}, {name: "org/n:1@2?x"})
    assert request.url == "https://h/models/org%2Fn:1@2%3Fx/x?deployment=org%2Fn:1@2%3Fx"


@pytest.mark.parametrize(
    "request_",
    [
        {"endpoint": "https://api.eu-1.example.com"},
        {"endpoint": "HTTPS://API.EU-1.example.com:443"},
        {"region": "eu-1", "model": "m"},
        {"region": "EU-1"},
    ],
)
def test_what_leads_to_the_same_place_as_the_connectors_own_value_is_no_other(request_: dict[str, str]) -> None:
    assert render(BLUEPRINT, REGION, request_).url.lower().replace(":443", "") == "https://api.eu-1.example.com/v1/m"


def test_a_parameter_that_is_in_no_url_is_the_callers() -> None:
    assert render("https://h/v1", {"region": "eu"}, {"region": "us", "endpoint": "https://evil"}).url == "https://h/v1"


# What the connector gives no value


@pytest.mark.parametrize(
    ("url", "request_", "names"),
    [
        ("${parameters.endpoint}/v1", {"endpoint": "https://evil.example"}, "[endpoint]"),
        ("${parameters.endpoint}/v1", {"endpoint": "https://u@evil.example"}, "[endpoint]"),
        ("${parameters.endpoint}/v1", {"endpoint": "x"}, "[endpoint]"),
        ("${parameters.endpoint}/${parameters.a}", {"endpoint": "https://evil", "a": "1"}, "[endpoint]"),
        ("${parameters.a:-https://h/}v1${parameters.b}", {"a": "https://evil/", "b": "1"}, "[a]"),
        ("https://${parameters.user}h/v1", {"user": "me@"}, "[user]"),
        ("https://${parameters.host}/v1", {"host": "evil.example"}, "[host]"),
        ("https://${parameters.resource}.openai.azure.com/v1", {"resource": "evil"}, "[resource]"),
        ("https://h.${parameters.region}.example.com/v1", {"region": "evil"}, "[region]"),
        ("https://${parameters.region:-eu}.example.com/v1", {"region": "us"}, "[region]"),
        ("https://${parameters.host:-api.example.com/v1}", {"host": "evil.example/v1"}, "[host]"),
        ("https://h:${parameters.port}/v1", {"port": "8443"}, "[port]"),
        ("http://h:80${parameters.more}/v1", {"more": "80"}, "[more]"),
        ("${parameters.scheme}://h/v1", {"scheme": "http"}, "[scheme]"),
        ("http${parameters.s}://h/v1", {"s": "s"}, "[s]"),
        ("https://h${parameters.path}", {"path": ".evil.example/v1"}, "[path]"),
        ("https://h${parameters.path}", {"path": "@evil.example/v1"}, "[path]"),
        ("https://h${parameters.path}", {"path": ":8443/v1"}, "[path]"),
    ],
)
def test_only_without_a_credential_a_request_fills_in_the_origin(
    url: str, request_: dict[str, str], names: str
) -> None:
    assert f"may not set {names}:" in refusal(url, {}, request_)
    assert "may not set" not in _outcome(url, request_)
    assert f"may not set {names}:" in refusal(url, {}, request_, {}, {"Authorization": "Bearer literal"})


def _outcome(url: str, request: dict[str, str]) -> str:
    try:
        return render(url, {}, request, {}).url
    except InvalidRequest as error:
        return error.reason


@pytest.mark.parametrize(
    ("url", "request_", "rendered"),
    [
        ("https://h/${parameters.account}/x", {"account": "a"}, "https://h/a/x"),
        ("https://h/x?v=${parameters.version:-1}", {"version": "2"}, "https://h/x?v=2"),
        ("https://h${parameters.path}", {"path": "/v1/x"}, "https://h/v1/x"),
        ("https://h${parameters.path}", {"path": ":443/x"}, "https://h:443/x"),
        ("https://${parameters.region:-eu}.example.com/v1", {"region": "eu"}, "https://eu.example.com/v1"),
        ("https://h/${parameters.path}", {"path": "a@evil.example:80"}, "https://h/a@evil.example:80"),
    ],
)
def test_a_request_fills_in_path_and_query(url: str, request_: dict[str, str], rendered: str) -> None:
    assert render(url, {}, request_).url == rendered


# What the connector lists


def test_a_connector_lists_what_callers_may_set() -> None:
    own = REGION | {"account": "a", "_caller_parameters": '["region", "account", "host"]'}
    request = render(f"{BLUEPRINT}/${{parameters.account}}", own, {"region": "us-1", "account": "b", "model": "n"})
    assert request.url == "https://api.us-1.example.com/v1/n/b"
    assert render("https://${parameters.host}/v1", own, {"host": "any.example"}).url == "https://any.example/v1"
    assert "[endpoint]" in refusal(BLUEPRINT, own, {"endpoint": "https://evil.example", "region": "us-1"})
    both = "https://${parameters.region}.example.com${parameters.path}"
    assert "[path]" in refusal(both, own, {"region": "us-1", "path": ".evil.example/"})


def test_a_listed_path_stays_a_path() -> None:
    own = {"path": "/v1", "_caller_parameters": '["path"]'}
    url = "https://h${parameters.path}"
    assert render(url, own, {"path": "/v2/x"}).url == "https://h/v2/x"
    assert "[path]" in refusal(url, own, {"path": ".evil.example/v2"})


def test_no_request_lists_its_own_names() -> None:
    assert refusal(BLUEPRINT, OWN, {"_caller_parameters": '["endpoint"]', "endpoint": "https://evil.example"})


@pytest.mark.parametrize("listed", ["region", '"region"', "{}", "[1]", "[", ""])
def test_a_list_that_is_none_is_named_when_it_is_needed(listed: str) -> None:
    own = REGION | {"_caller_parameters": listed}
    assert render(BLUEPRINT, own, {"inputs": "x"}).url == "https://api.eu-1.example.com/v1/m"
    with pytest.raises(InvalidRequest, match="_caller_parameters: must be a JSON list"):
        render(BLUEPRINT, own, {"region": "us-1"})


# Headers


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("OpenAI-Organization", "x"),
        ("OpenAI-Project", "x"),
        ("x-goog-user-project", "x"),
        ("X-DashScope-WorkSpace", "x"),
        ("x-portkey-custom-host", "x"),
        ("Helicone-Target-Url", "x"),
        ("X-Where", "account_id"),
        ("X-Where", "accountId"),
        ("X-Where", "baseUrl"),
        ("X-Where", "region"),
    ],
)
def test_a_header_that_names_a_host_or_an_account_is_the_connectors(header: str, name: str) -> None:
    headers = {header: f"${{parameters.{name}}}"}
    assert f"[{name}]" in refusal("https://h/v1", {name: "own"}, {name: "other"}, headers=headers)
    assert f"[{name}]" in refusal("https://h/v1", {name: "own"}, {name: "other"}, {}, headers=headers)
    assert render("https://h/v1", {name: "own"}, {name: "own"}, headers=headers).headers[header] == "own"
    listed = {name: "own", "_caller_parameters": json.dumps([name])}
    assert render("https://h/v1", listed, {name: "other"}, headers=headers).headers[header] == "other"


def test_a_header_that_names_an_account_may_be_left_to_callers_and_one_that_names_a_host_without_a_credential() -> None:
    account, host = {"OpenAI-Project": "${parameters.x}"}, {"X-Target-Url": "${parameters.x}"}
    assert render("https://h/v1", {}, {"x": "mine"}, headers=account).headers["OpenAI-Project"] == "mine"
    assert render("https://h/v1", {}, {"x": "mine"}, {}, headers=host).headers["X-Target-Url"] == "mine"
    assert "[x]" in refusal("https://h/v1", {}, {"x": "mine"}, headers=host)


@pytest.mark.parametrize("header", ["anthropic-version", "X-Security-Level", "X-Originality", "HTTP-Referer"])
def test_other_headers_are_the_callers(header: str) -> None:
    headers = {header: "${parameters.x}"}
    assert render("https://h/v1", {"x": "own"}, {"x": "other"}, headers=headers).headers[header] == "other"


# All connectors

BLUEPRINTS = sorted((Path(__file__).parents[3] / "blueprints").glob("*.json"))
CHOSEN = {  # what callers may set in the URLs of the blueprints
    "azure-openai-chat": {"deploy-name"},
    "azure-openai-embedding": {"deploy-name"},
    "databricks-chat": {"model"},
    "gemini-chat": {"model"},
    "mlserver-infer": {"model"},
    "open-inference-generate": {"model"},
    "sagemaker-chat": {"endpoint_name"},
    "sagemaker-embedding": {"endpoint_name"},
    "workers-ai-run": {"model"},
}


@pytest.mark.parametrize("file", BLUEPRINTS, ids=lambda file: file.stem)
def test_of_a_shipped_blueprints_url_callers_choose_the_model_alone(file: Path) -> None:
    connector = read_connector(connector_document(orjson.loads(file.read_bytes())["connector"]))
    rules = CallerParameters.compile(connector.action(), ConnectorParameters.compile(connector.parameters))
    chosen = rules.bound - rules.fixed
    is_in_path = file.stem.startswith(("bedrock-", "vertex-")) and file.stem != "bedrock-openai-chat"
    assert chosen == ({"model"} if is_in_path else CHOSEN.get(file.stem, set()))
    assert "endpoint" in rules.fixed
    assert not rules.open


def test_a_long_url_is_checked_in_steps_for_each_of_its_placeholders() -> None:
    def work(placeholders: int) -> int:
        url = "https://h" + "".join(f"/${{parameters.p{n}}}" for n in range(placeholders))
        own = {f"p{n}": f"${{parameters.q{n}}}" for n in range(placeholders)}
        return steps(lambda: render(url, own, {f"q{n}": "x" for n in range(placeholders)}))

    assert work(800) < 5 * work(200)


def compiled(own: dict[str, str], url: str = "https://${parameters.p0}", headers: int = 0) -> CallerParameters:
    filled = {f"X-Account-{n}": "${parameters.p0}" for n in range(headers)}
    action = Action("PREDICT", "POST", url, headers=filled)
    return CallerParameters.compile(action, ConnectorParameters.compile(own))


def test_neither_headers_nor_listed_names_multiply_the_steps_of_a_connectors_parameters() -> None:
    own = {f"p{n}": f"${{parameters.p{n + 1}}}" for n in range(40)}
    for n in range(40):
        own[f"p{n}"] += "".join(f"${{parameters.q{n}-{m}}}" for m in range(20))
    plain = steps(lambda: compiled(own).refused)
    listed = own | {"_caller_parameters": json.dumps(list(own))}
    assert steps(lambda: compiled(listed).refused) < 3 * plain
    assert steps(lambda: compiled(own, headers=100).refused) < 3 * plain


def test_a_url_that_is_too_long_is_not_read_to_its_end() -> None:
    url = "".join(f"${{parameters.p{n}}}" for n in range(800))
    short = steps(lambda: compiled({"p0": "x"}, url))
    assert steps(lambda: compiled({"p0": "x" * 20_000}, url)) < short

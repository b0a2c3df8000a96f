"""One version of a model: what is compiled and read from its documents, how often, and how much is kept."""

import json
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.conversation.conversation import Conversation, Text, Turn
from opensearch_ml_stream.connectors.conversation.dialect import ClientRequest
from opensearch_ml_stream.connectors.documents import read_connector, read_model
from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest
from opensearch_ml_stream.connectors.model_options import read_sidecar_settings
from opensearch_ml_stream.connectors.predict.guardrails.configuration import LocalGuard
from opensearch_ml_stream.connectors.predict.guardrails.patterns import GuardPattern
from opensearch_ml_stream.connectors.predict.inputs import RemoteInput
from opensearch_ml_stream.connectors.providers.ollama import OLLAMA
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT
from opensearch_ml_stream.plugin import refreshing_cache
from opensearch_ml_stream.plugin.limits.rate_limits import RateLimit
from opensearch_ml_stream.plugin.predictions import model_cache
from opensearch_ml_stream.plugin.predictions.compiled_model import MAX_CACHED_SPECS, MAX_INTERFACE_CHARS, CompiledModel
from opensearch_ml_stream.plugin.predictions.model_cache import FRESH_SECONDS, ModelCache
from opensearch_ml_stream.plugin.registry.default_model_interfaces import default_interface
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.predictions.prediction_setup import SECRET, connector_body, prediction_setup
from tests.scripted_protocol import OwnModel, OwnProtocol


def ready(document: dict[str, Any] | None = None, **connector: Any) -> CompiledModel:
    stored = read_connector(connector_body(**connector))
    return CompiledModel("m", read_model(document or {}), stored, stored.credential, external_credentials_enabled=True)


def test_an_action_is_compiled_once_with_the_credential_in_clear() -> None:
    model = ready()
    action = model.action()
    assert action.render({"inputs": "hi"}).headers["Authorization"] == f"Bearer {SECRET}"
    assert model.action() is action
    assert model.action("PREDICT") is action


def test_each_type_of_action_is_one_of_its_own() -> None:
    batch = {"action_type": "batch_predict", "method": "POST", "url": "https://api.openai.com/v1/batches"}
    model = ready(actions=[*connector_body()["actions"], batch])
    assert model.action("BATCH_PREDICT").action.url.endswith("/batches")
    assert model.action().action.url.endswith("/completions")
    with pytest.raises(InvalidRequest, match=r"^no EXECUTE action found in connector c$"):
        model.action("EXECUTE")


def test_an_action_is_compiled_again_only_when_an_external_credential_has_changed(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    model = ready(credential={"key": f"file:{token}"})
    first = model.action()
    assert model.action() is first
    token.write_text("second")
    second = model.action()
    assert second is not first
    assert second.render({"inputs": "hi"}).headers["Authorization"] == "Bearer second"
    assert model.action() is second


def test_a_conversation_leaves_out_what_the_settings_say_and_the_provider_cannot_be_told() -> None:
    conversation = Conversation((Turn("user", (Text("hi"),)),), options={"top_k": 4})
    client = ClientRequest("another", {}, lambda body: conversation)
    model = ready(action={"request_body": '{"messages": ${parameters.messages}}'})
    with pytest.raises(InvalidRequest, match=r"^\[top_k\] cannot be sent to this model's provider \(openai_chat\)"):
        model.render_conversation(client)
    model.settings = read_sidecar_settings({"drop_params": ["top_k"]})
    body = json.loads(model.render_conversation(client, model.spec({})).body)
    assert body["messages"] == [{"role": "user", "content": "hi"}]
    assert (body["stream"], "top_k" in body) == (True, False)


async def test_the_protocol_that_knows_a_model_supplies_its_actions_and_its_spec(tmp_path: Path) -> None:
    own = OwnProtocol(OwnModel(spec=OLLAMA))
    async with prediction_setup(tmp_path, protocols=[own]) as setup:
        for model_id in ("own-m", "other"):
            await setup.add_model(connector_body(), model_id)
        model = await setup.models.get(ANYONE, "own-m")
        assert model.protocol is own.model
        assert model.spec({}) is OLLAMA
        headers = model.action().render({"inputs": "hi"}).headers
        assert ("X-Own" in headers, "Authorization" in headers) == (True, False)
        other = await setup.models.get(ANYONE, "other")
        assert other.protocol is None
        assert other.spec({}) is OPENAI_CHAT


def test_credentials_outside_the_store_are_refused_unless_they_are_allowed() -> None:
    connector = read_connector(connector_body(credential={"key": "env:PATH"}))
    model = CompiledModel("m", read_model({}), connector, connector.credential)
    with pytest.raises(Forbidden, match="kept outside"):
        model.action()


def test_a_spec_is_found_once_for_each_interface_that_a_request_names() -> None:
    model = ready(url="https://api.openai.com/unknown/path")
    assert model.spec({"_llm_interface": "openai/v1/chat/completions"}) is OPENAI_CHAT
    assert model.spec({"_llm_interface": "openai/v1/chat/completions", "inputs": "x"}) is OPENAI_CHAT
    assert model.spec({"_llm_interface": "ollama/api/chat"}) is OLLAMA
    assert len(model._specs) == 2


def test_a_refusal_to_stream_is_remembered_too_and_raised_anew_each_time() -> None:
    model = ready(url="https://api.openai.com/v1/embeddings")
    raised = []
    for _ in range(3):
        with pytest.raises(InvalidRequest, match="cannot stream") as refused:
            model.spec({})
        raised.append(refused.value)
        assert len(refused.traceback) == 2
    assert raised[0] is raised[1] is raised[2]


def test_names_that_callers_make_up_fill_a_bounded_cache_only() -> None:
    model = ready(url="https://api.openai.com/unknown/path")
    for number in range(MAX_CACHED_SPECS + 10):
        with pytest.raises(InvalidRequest, match=rf"\[made up {number}\] is no known _llm_interface"):
            model.spec({"_llm_interface": f"made up {number}"})
    assert len(model._specs) == MAX_CACHED_SPECS
    assert model.spec({"_llm_interface": "ollama/api/chat"}) is OLLAMA


def test_the_rate_limit_is_that_of_the_models_document() -> None:
    assert ready().rate_limit is None
    model = ready({"rate_limiter": {"limit": "2", "unit": "MINUTES"}})
    assert model.rate_limit == RateLimit(2, 60)
    assert model.rate_limit is model.rate_limit
    with pytest.raises(InvalidRequest, match="rate_limiter"):
        _ = ready({"rate_limiter": {"limit": "2", "unit": "WEEKS"}}).rate_limit


def test_guardrails_are_those_of_the_models_document() -> None:
    assert ready().guardrails.input is None
    model = ready({"guardrails": {"type": "local_regex", "input_guardrail": {"regex": ["bad"]}}})
    assert model.guardrails.input == LocalGuard((GuardPattern.compile("bad"),))
    assert model.guardrails is model.guardrails
    with pytest.raises(InvalidRequest, match=r"^guardrails\.type"):
        _ = ready({"guardrails": {"type": "other"}}).guardrails


@pytest.mark.parametrize("as_string", [True, False])
def test_an_interface_is_checked_on_both_sides_stored_as_a_string_or_as_an_object(as_string: bool) -> None:
    schema = '{"type": "object", "required": ["needed"]}' if as_string else {"type": "object", "required": ["needed"]}
    model = ready({"interface": {"input": schema, "output": schema}})
    with pytest.raises(InvalidRequest, match=r"^Error validating input schema"):
        model.check_input(RemoteInput({"inputs": "x"}))
    with pytest.raises(InvalidRequest, match=r"^Error validating output schema"):
        model.check_output({"inference_results": []})
    model.check_output({"needed": 1})


def test_what_a_preset_says_of_responses_is_not_checked() -> None:
    parameters = {"service_name": "bedrock", "model": "anthropic.claude-v2"}
    preset = default_interface(parameters, None)
    assert preset is not None
    as_ml_commons_prints_it = json.dumps(json.loads(preset["output"]), indent=2)
    for output in (preset["output"], as_ml_commons_prints_it):
        model = ready({"interface": {**preset, "output": output}}, parameters=parameters)
        model.check_output({"inference_results": [{"output": [{"dataAsMap": {"stop": None}}]}]})
        assert not model.promises_output
        with pytest.raises(InvalidRequest, match=r"^Error validating input schema"):
            model.check_input(RemoteInput({"prompt": "x"}))
    other = ready({"interface": preset})
    with pytest.raises(InvalidRequest, match=r"^Error validating output schema"):
        other.check_output({})


@pytest.mark.parametrize("interface", [None, {}, {"input": "", "output": "null"}, {"input": None}])
def test_a_side_without_a_schema_allows_everything(interface: Any) -> None:
    model = ready({"interface": interface})
    model.check_input(RemoteInput({"inputs": "x"}))
    model.check_output({"anything": 1})


async def test_the_models_used_longest_ago_make_room_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000.0
    monkeypatch.setattr(refreshing_cache, "monotonic", lambda: now)
    monkeypatch.setattr(model_cache, "MAX_CACHED_CHARACTERS", 6_000)
    async with prediction_setup(tmp_path) as setup:
        for name in ("a", "b", "c", "d"):
            await setup.add_model(connector_body(description="x" * 1_500), name)
            await setup.models.get(ANYONE, name)
            now += FRESH_SECONDS
            await setup.models.get(ANYONE, "a")  # is in use all the time
        assert "a" in setup.models._entries
        assert "b" not in setup.models._entries
        await setup.add_model(connector_body(description="x" * 9_000), "large")
        await setup.models.get(ANYONE, "large")
        assert list(setup.models._entries._entries) == ["large"]


async def test_a_long_name_of_an_interface_is_not_kept(tmp_path: Path) -> None:
    async with prediction_setup(tmp_path) as setup:
        await setup.add_model(connector_body())
        model = await setup.models.get(ANYONE, "m")
        for length in (MAX_INTERFACE_CHARS, MAX_INTERFACE_CHARS + 1):
            model.spec({"_llm_interface": "x" * length})
        assert [len(name) for _, name in model._specs] == [MAX_INTERFACE_CHARS]


async def test_credentials_outside_the_store_are_read_at_use_if_the_settings_allow_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with prediction_setup(tmp_path) as setup:
        token = tmp_path / "token"
        token.write_text("first\n")
        monkeypatch.setenv("PROVIDER_KEY", "from the environment")
        credential = {"key": "env:PROVIDER_KEY", "token": f"file:{token}", "fixed": "x"}
        await setup.add_model(connector_body(credential=credential), "outside")
        with pytest.raises(Forbidden, match="kept outside"):
            _ = (await setup.models.get(ANYONE, "outside")).credential
        setup.live.current = Settings(external_credentials_enabled=True)
        allowed = ModelCache(setup.store, setup.cipher, setup.live, setup.models._plan_deployment)
        model = await allowed.get(ANYONE, "outside")
        assert model.credential == {"key": "from the environment", "token": "first", "fixed": "x"}
        token.write_text("second")
        assert model.credential["token"] == "second"


REGEX_GUARD = {"type": "local_regex", "input_guardrail": {"regex": [".*secret.*"]}}


@pytest.mark.parametrize(
    ("document", "more"),
    [
        ({"guardrails": REGEX_GUARD}, {}),
        ({"guardrails": {"type": "unknown"}}, {}),
        ({"rate_limiter": {"limit": "1", "unit": "MINUTES"}}, {}),
        ({"rate_limiter": "wrong"}, {}),
        ({}, {"limiters_by_user": {"ann": {"limit": "1", "unit": "MINUTES"}}}),
        ({}, {"settings": read_sidecar_settings({"limits": {"max_streams": 1}})}),
        ({}, {"settings": read_sidecar_settings({"limits": {"max_streams_per_user": 1}})}),
        ({}, {"settings": read_sidecar_settings({"budgets": [{"window": "1d", "tokens": 5}]})}),
        ({}, {"settings": read_sidecar_settings({"prices": {"input": 1, "output": 2}})}),
    ],
)
def test_a_model_says_whether_it_has_what_may_refuse_a_call(document: dict[str, Any], more: dict[str, Any]) -> None:
    stored = read_connector(connector_body())
    assert CompiledModel("m", read_model(document), stored, stored.credential, **more).has_limits


@pytest.mark.parametrize("document", [{}, {"guardrails": {**REGEX_GUARD, "input_guardrail": {}}}])
def test_times_and_output_guardrails_refuse_no_call(document: dict[str, Any]) -> None:
    stored, settings = read_connector(connector_body()), read_sidecar_settings({"limits": {"total_timeout_seconds": 5}})
    assert not CompiledModel("m", read_model(document), stored, stored.credential, settings=settings).has_limits


@pytest.mark.parametrize(("url", "stream"), [("/api/generate", {"stream": False}), ("/api/embed", {}), ("/v1/x", {})])
def test_a_provider_that_streams_unless_it_is_told_not_to_is_told_so(url: str, stream: dict[str, bool]) -> None:
    model = ready(url=f"http://ollama:11434{url}")
    assert json.loads(model.action().render({"inputs": "hi"}).body) == {"input": "hi", **stream}


def test_a_template_that_asks_for_a_stream_asks_for_none_in_a_whole_prediction() -> None:
    model = ready(action={"request_body": '{"input": "${parameters.inputs}", "stream": true}'})
    assert json.loads(model.action().render({"inputs": "hi"}).body) == {"input": "hi", "stream": False}

"""Blueprint files: their folders, their content, the values that a user has to give."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.client import blueprints
from opensearch_ml_stream.client.blueprints import (
    Blueprint,
    connector_body,
    find_blueprint,
    list_blueprints,
    model_body,
)
from opensearch_ml_stream.client.errors import RequestRefused
from opensearch_ml_stream.connectors.rendering import unfilled_values

CONNECTOR = {"name": "c", "parameters": {"model": "<model>", "t": 1}, "credential": {"key": "<key>"}, "actions": [{}]}
DOCUMENT = {
    "name": "b",
    "description": "d",
    "credential": {"key": "the key"},
    "parameters": {"model": "its name"},
    "connector": CONNECTOR,
    "model": {"name": "M", "description": "D"},
}


def write(folder: Path, document: Any) -> str:
    path = folder / "file.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return str(path)


def test_the_shipped_blueprints_are_found_by_name() -> None:
    names = [blueprint.name for blueprint in list_blueprints()]
    assert {"openai-chat", "anthropic-messages"} <= set(names)
    assert names == sorted(names)
    assert find_blueprint("openai-chat").description


def test_an_unknown_name_is_refused_with_the_names_most_like_it() -> None:
    with pytest.raises(RequestRefused, match=r"No blueprint is named openai-caht; did you mean openai-chat"):
        find_blueprint("openai-caht")


def test_in_an_installed_wheel_blueprints_are_found_in_the_share_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "share" / "opensearch-ml-stream" / "blueprints"
    shared.mkdir(parents=True)
    write(shared, DOCUMENT)
    monkeypatch.setattr(blueprints, "__file__", str(tmp_path / "a/b/c/d/blueprints.py"))
    monkeypatch.setattr("sysconfig.get_path", lambda name, scheme: str(tmp_path))
    assert [blueprint.name for blueprint in list_blueprints()] == ["b"]


def test_given_values_fill_the_connector(tmp_path: Path) -> None:
    blueprint = find_blueprint(write(tmp_path, DOCUMENT))
    body = connector_body(blueprint, {"model": "x", "_stream": "y"}, {"key": "k"}, "mine")
    assert body["parameters"] == {"model": "x", "t": 1, "_stream": "y"}
    assert (body["credential"], body["name"]) == ({"key": "k"}, "mine")
    assert model_body(blueprint, "c1") == {
        "name": "M", "description": "D", "function_name": "remote", "connector_id": "c1"
    }  # fmt: skip
    assert model_body(blueprint, "c1", "mine")["name"] == "mine"
    assert CONNECTOR["credential"] == {"key": "<key>"}


@pytest.mark.parametrize(
    ("parameters", "credential", "words"),
    [
        ({"model": "x"}, {}, r"needs the credential \[key\] \(the key\)"),
        ({}, {"key": "k"}, r"needs the parameter \[model\] \(its name\)"),
        ({"model": "x"}, {"key": "k", "kye": "k"}, r"no credential \[kye\]; it takes key"),
    ],
)
def test_a_missing_or_unknown_value_is_named(
    tmp_path: Path, parameters: dict[str, str], credential: dict[str, str], words: str
) -> None:
    with pytest.raises(RequestRefused, match=words):
        connector_body(find_blueprint(write(tmp_path, DOCUMENT)), parameters, credential)


@pytest.mark.parametrize(
    ("endpoint", "doubled"),
    [
        ("http://h:8000/v1", "/v1"),
        ("http://h:8000/v1/chat/completions", "/v1/chat/completions"),
        ("http://h:8000/", "/"),
    ],
)
def test_an_endpoint_with_the_path_that_the_blueprint_adds_is_refused(endpoint: str, doubled: str) -> None:
    words = (
        rf"\[endpoint\] ends with {doubled}, and openai-chat adds /v1/chat/completions to it: leave {doubled} out \("
    )
    with pytest.raises(RequestRefused, match=words):
        connector_body(find_blueprint("openai-chat"), {"endpoint": endpoint}, {"openAI_key": "k"})


@pytest.mark.parametrize("endpoint", ["http://h:8000", "http://h/openai", "http://h/v1/openai", "http://h/xv1"])
def test_an_endpoint_with_another_path_is_taken(endpoint: str) -> None:
    body = connector_body(find_blueprint("openai-chat"), {"endpoint": endpoint}, {"openAI_key": "k"})
    assert body["parameters"]["endpoint"] == endpoint


@pytest.mark.parametrize("blueprint", list_blueprints(), ids=lambda blueprint: blueprint.name)
def test_no_shipped_blueprint_sends_a_key_to_a_host_or_account_that_only_shows_what_one_looks_like(
    blueprint: Blueprint,
) -> None:
    shown = {key for key, value in blueprint.connector["parameters"].items() if re.match(r"(https://)?my-", str(value))}
    assert shown == set(blueprint.required) <= blueprint.parameters.keys()
    credential = dict.fromkeys(blueprint.credential, "k")
    for key in shown:
        others = dict.fromkeys(shown - {key}, "x")
        with pytest.raises(RequestRefused, match=rf"needs the parameter \[{key}\]"):
            connector_body(blueprint, others, credential)
    assert connector_body(blueprint, dict.fromkeys(shown, "x"), credential)


@pytest.mark.parametrize("value", ["<region>", " <YOUR NAME> ", "YOUR API KEY", "REPLACE_IT", "", "<s>[INST] x", 7])
def test_a_value_that_is_to_be_given_is_the_same_for_this_client_and_the_server(value: object) -> None:
    assert blueprints.is_to_be_given(value) == unfilled_values.is_to_be_given(value)


def test_a_connector_body_alone_is_a_blueprint_with_comments_and_all(tmp_path: Path) -> None:
    text = '/* from the documentation */ {"description": "see http://h", // here\n' + json.dumps(CONNECTOR)[1:] + "}"
    blueprint = find_blueprint(write(tmp_path, text))
    assert (blueprint.name, blueprint.description) == ("file", "see http://h")
    assert connector_body(blueprint, {"model": "x"}, {"key": "k"})["credential"] == {"key": "k"}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("{", "is not JSON: Expecting"),
        ("[]", "is not JSON: it is not an object"),
        ('{"a": NaN}', "is not JSON: NaN"),
        ('{"a": 1, "a": 2}', "is not JSON: an object has two members of one name"),
        ({"name": "x"}, r"has no \[connector\] object"),
    ],
)
def test_a_file_that_is_no_blueprint_is_named_with_the_reason(tmp_path: Path, document: Any, words: str) -> None:
    with pytest.raises(RequestRefused, match=rf"The blueprint .*file\.json {words}"):
        find_blueprint(write(tmp_path, document))


def test_a_missing_file_is_named() -> None:
    with pytest.raises(RequestRefused, match=r"Cannot read the blueprint nope\.json: No such file"):
        find_blueprint("nope.json")


def test_an_installation_without_blueprints_is_told_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blueprints, "__file__", str(tmp_path / "a/b/c/d/blueprints.py"))
    monkeypatch.setattr("sysconfig.get_path", lambda name, scheme: str(tmp_path))
    with pytest.raises(RequestRefused, match="No blueprints are installed; give a file to --blueprint instead"):
        list_blueprints()

"""The libraries of others in the page: as their packages have them, with versions and licences that are named."""

import json
from hashlib import sha256
from importlib import resources
from pathlib import PurePosixPath
from typing import Any

import pytest

from opensearch_ml_stream.extensions.playground.http.page_files import read_static_files

FOLDER = resources.files("opensearch_ml_stream.extensions.playground.http").joinpath("vendored")
VENDORED: list[dict[str, Any]] = json.loads(FOLDER.joinpath("vendored.json").read_bytes())


@pytest.mark.parametrize("one", VENDORED, ids=lambda one: one["package"])
def test_a_file_is_the_one_of_the_package_and_says_its_version(one: dict[str, Any]) -> None:
    content = FOLDER.joinpath(PurePosixPath(one["file"]).name).read_bytes()
    assert sha256(content).hexdigest() == one["sha256"]
    assert one["version"].encode() in content[:500]
    assert one["integrity"].startswith("sha512-")


@pytest.mark.parametrize("one", VENDORED, ids=lambda one: one["package"])
def test_its_licence_stands_beside_it(one: dict[str, Any]) -> None:
    text = FOLDER.joinpath(f"LICENSE.{one['package']}").read_text("utf-8")
    assert "Apache License" in text if "Apache" in one["license"] else "Permission is hereby granted" in text


def test_there_are_no_other_files_of_others() -> None:
    named = {PurePosixPath(one["file"]).name for one in VENDORED}
    licences = {f"LICENSE.{one['package']}" for one in VENDORED}
    assert {file.name for file in FOLDER.iterdir()} == named | licences | {"vendored.json"}
    assert named <= read_static_files().keys()

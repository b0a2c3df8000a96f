"""What is to be typed for the packages of an extra."""

import tomllib
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.extras import install_command

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("extra", ["grpc", "huggingface", "vllm", "llama-cpp", "mlserver"])
def test_the_packages_of_an_extra_are_named_themselves_since_ours_may_be_on_no_registry(extra: str) -> None:
    packages = sorted(PROJECT["optional-dependencies"][extra])
    assert install_command(extra) == " ".join(["pip install", *(f"'{package}'" for package in packages)])

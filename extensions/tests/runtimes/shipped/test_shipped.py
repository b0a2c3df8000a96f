"""The names under which the shipped runtimes are found."""

import sys
from pathlib import Path

import pytest

from opensearch_ml_stream.runtimes.shipped_runtimes import SHORT_NAMES, find_engine, resolve

HUGGING_FACE = "opensearch_ml_stream.runtimes.huggingface.HuggingFaceRuntime"


@pytest.mark.parametrize("path", SHORT_NAMES.values())
def test_each_short_name_leads_to_a_class_in_a_file_of_the_package(path: str) -> None:
    package, _, class_name = path.rpartition(".")
    folder = Path(__file__).parents[4] / "extensions" / Path(*package.split("."))
    assert f"\nclass {class_name}(" in folder.with_suffix(".py").read_text()


def test_other_implementations_stay_as_they_are() -> None:
    assert resolve("model.MyModel") == "model.MyModel"
    assert resolve(HUGGING_FACE) == HUGGING_FACE
    assert resolve("huggingface") == HUGGING_FACE
    assert [find_engine(name) for name in ("model.MyModel", "huggingface", "vllm")] == [None, None, "vllm"]


def test_seldons_local_runtime_is_taken_over_by_its_backend() -> None:
    local = "mlserver_llm_local.runtime.Local"
    backends = ("vllm", "llama-cpp", "llama_cpp", "transformers", "deepspeed")
    engines = ["vllm", "llama-cpp", "llama-cpp", None, None]
    assert [find_engine(local, {"backend": backend}) for backend in backends] == engines
    assert resolve(local, {"backend": "transformers"}) == resolve(local) == HUGGING_FACE
    with pytest.raises(ValueError, match=r"backend \[deepspeed\] is not supported"):
        resolve(local, {"backend": "deepspeed"})


def test_mlservers_runtime_is_taken_over_only_where_it_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = "mlserver_huggingface.HuggingFaceRuntime"
    assert resolve(theirs) == HUGGING_FACE
    (tmp_path / "mlserver_huggingface.py").write_text("")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert resolve(theirs) == theirs

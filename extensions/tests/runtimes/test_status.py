"""The status file of the runtime models."""

from pathlib import Path

from opensearch_ml_stream.extensions.runtimes.service.status import (
    ModelStatus,
    ProcessStatus,
    read_status,
    write_status,
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    models = {
        "echo": ModelStatus("READY", version="v1", processes=[ProcessStatus("/run/1.0.sock", 12, True)]),
        "other": ModelStatus("FAILED", "No module named 'x'"),
    }
    write_status(tmp_path / "status.json", models)
    assert read_status(tmp_path / "status.json") == models
    write_status(tmp_path / "status.json", {})
    assert read_status(tmp_path / "status.json") == {}
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]


def test_before_the_keeper_has_written_there_are_no_models(tmp_path: Path) -> None:
    assert read_status(tmp_path / "status.json") == {}

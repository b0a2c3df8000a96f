"""Files as parts of a message."""

from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.extensions.openai_api.cli.attached_file import read_attachment
from opensearch_ml_stream.extensions.openai_api.protocol.content_parts import read_content
from opensearch_ml_stream.plugin.cli.command_errors import WrongUsage

PNG = {"type": "image_url", "image_url": {"url": "data:image/png;base64,/w=="}}
PDF = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,/w=="}}


@pytest.mark.parametrize(
    ("name", "data", "part"),
    [
        ("a.PNG", b"\xff", PNG),
        ("a.pdf", b"\xff", PDF),
        ("a.py", "x = 'é'".encode(), {"type": "text", "text": "a.py:\n\nx = 'é'"}),
        ("Makefile", b"all:", {"type": "text", "text": "Makefile:\n\nall:"}),
    ],
)
def test_images_pdfs_and_texts_become_parts_that_the_sidecar_reads(
    tmp_path: Path, name: str, data: bytes, part: dict[str, Any]
) -> None:
    (tmp_path / name).write_bytes(data)
    assert read_attachment(tmp_path / name) == part
    unknown: dict[str, Any] = {}
    assert len(read_content([part], "content", unknown)) == 1
    assert unknown == {}


@pytest.mark.parametrize("data", [b"\xff\xfe", b"a\0b"])
def test_what_is_neither_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.bin").write_bytes(data)
    with pytest.raises(WrongUsage, match=r"a\.bin is neither an image \(\.gif, .*\), a \.pdf, nor a text in UTF-8"):
        read_attachment(tmp_path / "a.bin")


def test_a_file_of_seven_mib_is_read_and_a_larger_one_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"a" * 7 * 2**20)
    assert len(read_attachment(file)["text"]) > 7 * 2**20
    file.write_bytes(b"a" * (7 * 2**20 + 1))
    with pytest.raises(WrongUsage, match="more than 7 MiB"):
        read_attachment(file)


def test_what_is_no_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing", Path("/dev/zero")):
        with pytest.raises(WrongUsage, match="is no file"):
            read_attachment(path)

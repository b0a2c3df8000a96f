"""What the documentation for contributors names is there: files, make targets, names in the code, a working example."""

import builtins
import re
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.chunks import Ending
from tests.providers.recorded_streams import join_chunks, play

_CHECKOUT = Path(__file__).parents[2]
_PAGES = [
    _CHECKOUT / "CONTRIBUTING.md",
    _CHECKOUT / "SECURITY.md",
    _CHECKOUT / "docs/adding-a-provider.md",
    _CHECKOUT / "docs/architecture.md",
    _CHECKOUT / "docs/extensions.md",
    _CHECKOUT / "docs/guardrails.md",
    _CHECKOUT / "docs/memory.md",
    *sorted((_CHECKOUT / "docs/decisions").glob("*.md")),
]
_PACKAGES = [
    *_CHECKOUT.glob("*/opensearch_ml_stream/*"),
    *_CHECKOUT.glob("plugin/opensearch_ml_stream/plugin/*"),
    *_CHECKOUT.glob("extensions/opensearch_ml_stream/extensions/*"),
]
_BLOCK = re.compile(r"^(?:```.*?^```|(?:    [^\n]*\n)+)", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"`([^`\n]+)`(?! \(new\))")  # what the reader is to make is marked (new)
_LINK = re.compile(r"\]\(([^)#:]*)(?:#([a-z0-9-]+))?\)")
_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*/?")
_ENDINGS = ("/", ".py", ".md", ".json", ".sse", ".svg", ".toml", ".sh", ".typed")
_NAME = re.compile(r"\w+(?:\.\w+)*(?:\(\))?")

_FOR_USERS = [_CHECKOUT / "README.md", *sorted((_CHECKOUT / "docs").glob("*.md"))]
every_page = pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)


def _named(page: Path) -> list[str]:
    return _NAMED.findall(_BLOCK.sub("", page.read_text("utf-8")))


def _is_path(name: str) -> bool:
    top = name.partition("/")[0]
    made = top in (".venv", "dist")
    return _PATH.fullmatch(name) is not None and not made and (
        name.endswith(_ENDINGS) or ("/" in name and (_CHECKOUT / top).is_dir())
    )  # fmt: skip


def _exists(path: str) -> bool:
    """As it stands, below a room's package (as the pages shorten paths), or anywhere in one if it is a name alone."""
    if any((folder / path).exists() for folder in (_CHECKOUT, *_PACKAGES)):
        return True
    return "/" not in path and any(next(package.rglob(path), None) for package in _PACKAGES)


def _headings(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", _BLOCK.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def _words() -> set[str]:
    folders = [folder for folder in _CHECKOUT.iterdir() if folder.is_dir() and not folder.name.startswith(".")]
    files = [file for folder in folders for file in folder.rglob("*.py")]
    files += [_CHECKOUT / "Makefile", _CHECKOUT / "pyproject.toml"]
    blocks = [block for page in _PAGES for block in _BLOCK.findall(page.read_text("utf-8"))]
    texts = [*blocks, *(file.read_text("utf-8") for file in files)]
    return set(dir(builtins)).union(*(re.findall(r"\w+", text) for text in texts))


@every_page
def test_every_file_that_is_named_is_there(page: Path) -> None:
    assert [name for name in _named(page) if _is_path(name) and not _exists(name)] == []


@pytest.mark.parametrize("picture", ["architecture.svg", "request-path.svg"])
def test_every_module_and_folder_in_a_picture_is_there(picture: str) -> None:
    names = re.findall(r"[\w/]+\.py|(?<=>)[\w/]+/(?=<)", (_CHECKOUT / "docs" / picture).read_text("utf-8"))
    assert names
    assert [name for name in names if not _exists(name)] == []


def test_every_room_of_a_root_is_in_the_drawing_of_the_architecture() -> None:
    drawing = (_CHECKOUT / "docs/architecture.svg").read_text("utf-8")
    packages = [root / root.parent.name for root in _CHECKOUT.glob("*/opensearch_ml_stream")]
    rooms = [room.parent.name for package in packages for room in package.glob("*/__init__.py")]
    assert rooms
    assert [room for room in rooms if f">{room}/<" not in drawing] == []


@pytest.mark.parametrize("page", sorted({*_PAGES, *_FOR_USERS}), ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target, heading in _LINK.findall(_BLOCK.sub("", page.read_text("utf-8"))):
        linked = page.parent / target if target else page
        assert linked.exists(), target
        assert not heading or heading in _headings(linked), f"{target}#{heading}"


def test_the_readme_says_where_to_look_for_every_page() -> None:
    table = (_CHECKOUT / "README.md").read_text("utf-8").partition("\n## Where to look\n")[2].partition("\n## ")[0]
    linked = {_CHECKOUT / target for target, _ in _LINK.findall(table)}
    assert {*_FOR_USERS[1:], _CHECKOUT / "SECURITY.md", _CHECKOUT / "CONTRIBUTING.md"} <= linked


@every_page
def test_every_make_target_is_in_the_makefile(page: Path) -> None:
    targets = set(
        re.findall(r"^([a-z]+)(?: [a-z ]+)?:(?!=)", (_CHECKOUT / "Makefile").read_text("utf-8"), re.MULTILINE)
    )
    text = page.read_text("utf-8")
    called = re.findall(r"(?:^    |`)make((?: [a-z]+)+)", text, re.MULTILINE)
    assert {target for targets_of_call in called for target in targets_of_call.split()} <= targets


def test_every_name_in_the_code_is_there() -> None:
    words = _words()
    for page in _PAGES:
        names = [name for name in _named(page) if _NAME.fullmatch(name) and not _is_path(name)]
        assert [name for name in names if not words.issuperset(re.findall(r"\w+", name))] == [], page.name


def test_the_provider_of_the_worked_example_reads_its_stream() -> None:
    blocks = re.findall(
        r"^```\w*\n(.*?)^```", (_CHECKOUT / "docs/adding-a-provider.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    exchange, module = (next(block for block in blocks if block.startswith(start)) for start in ("source:", '"""'))
    names: dict[str, Any] = {}
    exec(module, names)
    [interface] = names["PROVIDER"].interfaces
    chunks, outcome = play(interface.spec.decoder(), [exchange.partition("---\n")[2].encode()])
    assert join_chunks(chunks)[0] == "Deep sea"
    assert isinstance(outcome, Ending)
    assert outcome.native_finish_reason == "limit"

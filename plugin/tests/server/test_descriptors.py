"""The limit of file descriptors is raised as far as it goes, and clients get half of it."""

import errno
import os
import resource

import pytest

from opensearch_ml_stream.plugin.server import file_descriptors


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The limits of this process, the last of the list."""
    kept = [(1024, 4096)]
    monkeypatch.setattr(resource, "getrlimit", lambda kind: kept[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda kind, new: kept.append(new))
    return kept


def test_the_limit_is_raised_to_what_the_operator_allows(limits: list[tuple[int, int]]) -> None:
    file_descriptors.raise_limit()
    assert limits[1:] == [(4096, 4096)]
    file_descriptors.raise_limit()
    assert len(limits) == 2


def test_a_system_that_refuses_keeps_its_limit(monkeypatch: pytest.MonkeyPatch, limits: list[tuple[int, int]]) -> None:
    def refuse(kind: int, new: tuple[int, int]) -> None:
        raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    file_descriptors.raise_limit()
    assert file_descriptors.limit() == 1024


@pytest.mark.parametrize(
    ("limit", "most"), [(1024, 462), (20_000, 9_950), (1_000_000, 10_000), (resource.RLIM_INFINITY, 10_000), (90, 1)]
)
def test_clients_leave_as_many_descriptors_to_providers(limits: list[tuple[int, int]], limit: int, most: int) -> None:
    limits.append((limit, limit))
    assert file_descriptors.most_connections(10_000) == most


@pytest.mark.parametrize(("number", "exhausted"), [(errno.EMFILE, True), (errno.ENFILE, True), (errno.EACCES, False)])
def test_descriptors_are_exhausted_when_none_can_be_opened(
    monkeypatch: pytest.MonkeyPatch, number: int, exhausted: bool
) -> None:
    assert not file_descriptors.are_exhausted()

    def refuse(path: str, flags: int) -> int:
        raise OSError(number, "no")

    monkeypatch.setattr(os, "open", refuse)
    assert file_descriptors.are_exhausted() is exhausted

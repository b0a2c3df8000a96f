"""How pytest-xdist deals out the tests to its processes: a file, or all that use one real server, to one of them."""

import pytest
from xdist.scheduler import LoadScopeScheduling

_SERVERS = ("opensearch", "secured", "ml_commons")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    """With `--dist loadgroup`."""
    return _ByFileOrServer(config, log)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Name the server of a test behind its own name; some look at all that a server holds."""
    for item in items:
        for marker in map(item.get_closest_marker, _SERVERS):
            if marker is not None:
                item.add_marker(pytest.mark.xdist_group("-".join([marker.name, *marker.args])))


class _ByFileOrServer(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    def _split_scope(self, nodeid: str) -> str:
        _test, at, server = nodeid.rpartition("@")
        return server if at and "]" not in server else nodeid.partition("::")[0]

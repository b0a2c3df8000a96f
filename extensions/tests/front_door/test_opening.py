import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.front_door.opening import check_store
from opensearch_ml_stream.plugin.settings import Settings


def test_requests_are_passed_on_to_a_cluster_alone() -> None:
    with pytest.raises(InvalidRequest, match=r"embedded store is not a cluster: .*--store http\(s\)://host:port"):
        check_store(Settings(store="sqlite:///:memory:"))
    check_store(Settings(store="http://127.0.0.1:9200"))

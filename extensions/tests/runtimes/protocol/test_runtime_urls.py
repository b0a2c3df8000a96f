import pytest

from opensearch_ml_stream.extensions.runtimes.protocol.runtime_urls import is_runtime_url, runtime_name, runtime_url


@pytest.mark.parametrize("name", ["echo", "a b", "a/b", "ü:?#%", "runtime://x", "..", "%2F"])
def test_a_name_comes_back_from_its_url_also_with_a_path_behind_it(name: str) -> None:
    url = runtime_url(name)
    assert is_runtime_url(url)
    assert runtime_name(url) == name
    assert runtime_name(f"{url}/predict_stream") == name


def test_a_url_of_the_network_is_no_runtimes() -> None:
    assert not is_runtime_url("https://runtime/x")
    assert not is_runtime_url("http://runtime://x")

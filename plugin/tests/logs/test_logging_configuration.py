"""What is logged at which level, and by whom."""

import logging

import pytest

from opensearch_ml_stream.plugin.logs.configuration import JSONFormat, TextFormat, configure_logging

pytestmark = pytest.mark.usefixtures("restored_logging")


def test_libraries_log_warnings_and_opensearch_py_errors_only() -> None:
    configure_logging("debug", "text")
    assert logging.getLogger("asyncio").getEffectiveLevel() == logging.WARNING
    assert logging.getLogger("opensearch").getEffectiveLevel() == logging.ERROR
    assert logging.getLogger("opensearch_ml_stream.plugin.store").getEffectiveLevel() == logging.DEBUG


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_the_level_is_the_settings(level: str) -> None:
    configure_logging(level, "text")
    assert logging.getLogger("opensearch_ml_stream").level == getattr(logging, level.upper())
    assert logging.getLogger("opensearch_ml_stream.access").isEnabledFor(logging.INFO)


@pytest.mark.parametrize(("name", "form"), [("text", TextFormat), ("json", JSONFormat)])
def test_there_is_one_handler_however_often_it_is_configured(name: str, form: type[logging.Formatter]) -> None:
    for _ in range(2):
        configure_logging("info", name)
    handlers = [handler for handler in logging.getLogger().handlers if type(handler) is logging.StreamHandler]
    assert [type(handler.formatter) for handler in handlers] == [form]

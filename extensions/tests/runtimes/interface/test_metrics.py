"""A model's own metrics are those that MLServer makes with prometheus_client."""

import math

import pytest
from prometheus_client import CollectorRegistry, Histogram

from opensearch_ml_stream.runtimes.interface.context import model_context
from opensearch_ml_stream.runtimes.interface.metrics import MetricsRegistry, log, register
from opensearch_ml_stream.runtimes.interface.settings import ModelSettings

LABELS = ("model_name", "model_version")


def test_a_histogram_says_what_prometheus_clients_does() -> None:
    theirs, ours = CollectorRegistry(), MetricsRegistry()
    made = (Histogram("words", "Words.", LABELS, registry=theirs), ours.register("words", "Words."))
    for metric in made:
        for value in (-1, 0, 0.005, 0.0051, 1, 10, 10.5, math.inf, math.nan):
            metric.labels(model_name="m", model_version="").observe(value)
        metric.labels("n", "v1").observe(2, {"trace": "1"})
        metric.labels("unused", "")
    [expected], [found] = theirs.collect(), ours.collect()
    samples = [(one.name, one.labels, str(one.value)) for one in expected.samples if not one.name.endswith("_created")]
    assert [(one.name, one.labels, str(float(one.value))) for one in found.samples] == samples
    assert (found.name, found.documentation, found.type) == (expected.name, expected.documentation, expected.type)


@pytest.mark.parametrize("labels", [{"user": "u"}, {"model_name": "m"}, {}])
def test_there_are_no_other_labels_than_the_models(labels: dict[str, str]) -> None:
    theirs = Histogram("words", "Words.", LABELS, registry=CollectorRegistry())
    ours = MetricsRegistry().register("words", "Words.")
    for metric in (theirs, ours):
        with pytest.raises(ValueError, match=r"Incorrect label|No labels"):
            metric.labels(**labels)


@pytest.mark.parametrize("name", ["", "1st", "a b", "a-b"])
def test_what_is_no_name_of_a_metric_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="Invalid metric name"):
        MetricsRegistry().register(name, "")


def test_what_is_logged_has_the_models_labels_and_need_not_be_registered() -> None:
    registered = register("test_metrics_registered", "Of a model.")
    assert register("test_metrics_registered", "Again.") is registered
    with model_context(ModelSettings(name="m", implementation="a.B", parameters={"version": "v1"})):
        log(test_metrics_registered=1.5, test_metrics_new=2)
    for name, total in (("test_metrics_registered", 1.5), ("test_metrics_new", 2)):
        last = register(name, "").collect().samples[-1]
        assert last == (f"{name}_sum", {"model_name": "m", "model_version": "v1"}, total)


def test_the_time_of_a_block_is_counted_also_of_one_that_fails() -> None:
    series = MetricsRegistry().register("seconds", "").labels("m", "")
    with series.time():
        pass
    with pytest.raises(KeyError), series.time():
        raise KeyError
    assert list(series.samples("seconds", {}))[-2] == ("seconds_count", {}, 2)

"""Write metrics in Prometheus's text format."""

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from chatcore.metrics.snapshots import snapshots

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def build_gauge(
    name: str, text: str, values: dict[str, float] | float, *, label: str = ""
) -> Metric:
    """Return a metric with a value of now, or with one for each value of its label."""
    gauge = GaugeMetricFamily(name, text, labels=[label] if label else [])
    for label_value, value in values.items() if isinstance(values, dict) else [("", values)]:
        gauge.add_metric([label_value] if label else [], value)
    return gauge


def render(gauges: Iterable[Metric] = ()) -> bytes:
    """Return what the processes of this machine have counted, and then `gauges`."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Metrics(gauges))
    return generate_latest(registry)


class _Metrics(Collector):
    def __init__(self, gauges: Iterable[Metric]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        for name, family in snapshots.sum_up().items():
            metric = Metric(name, family.text, family.kind)
            for (sample_name, labels), value in family.samples.items():
                metric.add_sample(sample_name, dict(labels), value)
            yield metric
        yield from self._gauges

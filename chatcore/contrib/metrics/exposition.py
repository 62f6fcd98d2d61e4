"""Write metrics in Prometheus's text format."""

import threading
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from chatcore.contrib.metrics.snapshots import snapshots

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def build_gauge(
    name: str, text: str, values: dict[str, float] | float, *, label: str = ""
) -> Metric:
    """Return a metric with a value of now, or with one for each value of its label."""
    gauge = GaugeMetricFamily(name, text, labels=[label] if label else [])
    for label_value, value in values.items() if isinstance(values, dict) else [("", values)]:
        gauge.add_metric([label_value] if label else [], value)
    return gauge


def render(gauges: Iterable[Metric] = (), *, with_own: bool = True) -> bytes:
    """Return what the processes of this machine have counted, and then `gauges`."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Metrics(gauges, with_own=with_own))
    return generate_latest(registry)


def serve_counts(host: str, port: int) -> None:
    """Serve what the processes of this machine have counted, in a thread, until the process ends.

    For machines without a web process. Raises OSError if the address cannot be had.
    """
    server = ThreadingHTTPServer((host, port), _CountsHandler)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()


class _CountsHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer at /metrics alone."""
        is_known = self.path == "/metrics"
        body = render(with_own=False) if is_known else b""
        self.send_response(200 if is_known else 404)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: a scrape is no news."""


class _Metrics(Collector):
    def __init__(self, gauges: Iterable[Metric], *, with_own: bool) -> None:
        self._gauges = gauges
        self._with_own = with_own

    def collect(self) -> Iterator[Metric]:
        for name, family in snapshots.sum_up(with_own=self._with_own).items():
            metric = Metric(name, family.text, family.kind)
            for (sample_name, labels), value in family.samples.items():
                metric.add_sample(sample_name, dict(labels), value)
            yield metric
        yield from self._gauges

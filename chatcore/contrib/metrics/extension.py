"""Where metrics are counted and read."""

from chatcore.extension import Extension


class Metrics(Extension):
    counts = "chatcore.contrib.metrics.counts.PrometheusCounts"
    # Prometheus comes as a probe does: over plain HTTP, to an address.
    probes = {"/metrics": "chatcore.contrib.metrics.endpoint.report_metrics"}

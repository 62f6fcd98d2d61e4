"""The app of metrics."""

from chatcore.extension import ExtensionConfig


class Metrics(ExtensionConfig):
    default = True
    name = "chatcore.contrib.metrics"
    label = "metrics"
    verbose_name = "Metrics"
    extension = "chatcore.contrib.metrics.extension.Metrics"

"""OpenTelemetry traces, off by default: what a request, a turn, a call and a compaction took.

The names are those of the semantic conventions of OpenTelemetry, for HTTP and for generative AI.
Where traces are off, nothing of OpenTelemetry is imported.
"""

"""OpenTelemetry traces, off by default: what a request, a turn, a call and a compaction took.

The names are those of the semantic conventions of OpenTelemetry, for HTTP and for generative AI.
Where traces are off, nothing of OpenTelemetry is imported. Ours have a provider of their own: by a
global one the SDKs would describe their calls once more, with what they choose.
"""

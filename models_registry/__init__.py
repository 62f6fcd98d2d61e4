"""The registry of language models: their limits, prices and providers.

It imports neither chatcore nor compaction.
"""

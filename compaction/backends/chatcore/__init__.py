"""Chatcore as the host: the only package of compaction that imports it."""

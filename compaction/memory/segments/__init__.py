"""Summaries that are composed of segments: each span of messages is summarized once."""

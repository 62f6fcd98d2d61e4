"""Summaries that are composed of leaves: each span of messages is summarized once."""

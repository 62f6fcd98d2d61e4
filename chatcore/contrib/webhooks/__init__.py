"""Webhooks: URLs of users that are told when a turn or a compaction has ended."""

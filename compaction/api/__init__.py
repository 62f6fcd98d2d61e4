"""Compaction's REST API: runs, context, policies, structured state and memory.

It shows only the user's own sessions. Its REST conventions come from `chatcore/base/rest/`.
"""

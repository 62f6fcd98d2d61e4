"""The event log of a session: it feeds open pages, API clients and apps.

Start with `types.py` (all events and their fields) and `log.py` (append, read, follow).
"""

"""The event log of a session: what happens in it, told to open pages, API clients and webhooks.

Start with `types.py` (all events and their fields) and `log.py` (append, read, follow).
"""

"""Carry new events from the process that writes them to the readers in others.

One module a way: by polling the database, by PostgreSQL's LISTEN and NOTIFY, or by a Redis stream.
`CHATCORE["EVENT_RELAY"]` names another by its dotted path. The database has every event: a relay
that fails makes readers slower, and they miss nothing.
"""

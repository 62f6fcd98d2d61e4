"""Anthropic's `/v1/messages`: its content blocks, events and errors, over sessions and turns.

A client that names a session gets a memory; one that names none is answered without storing.
"""

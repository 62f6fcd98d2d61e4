"""OpenAI's `/v1/chat/completions` and `/v1/models`.

A client that names a session gets a memory; one that names none is answered without storing.
"""

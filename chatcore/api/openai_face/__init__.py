"""The OpenAI face: `/v1/chat/completions` and `/v1/models` for any OpenAI client, with a memory where the client names a session."""

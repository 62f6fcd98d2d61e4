"""OpenAI's `/v1/embeddings` and `/v1/completions`, passed on to the provider of the model.

Nothing is stored, and nothing of it belongs to a conversation.
"""

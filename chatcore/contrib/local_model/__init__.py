"""The embedded language model: its weights, its process and its rows in the registry."""

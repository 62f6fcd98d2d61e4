"""Chats from other products: readers of their exports, and imports of what these hold."""

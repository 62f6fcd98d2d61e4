"""Titles of chats that the model writes, after the first answer of a chat that the page began."""

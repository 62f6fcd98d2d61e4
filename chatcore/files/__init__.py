"""Files attached to messages: accept them, extract their text, and put them into requests."""

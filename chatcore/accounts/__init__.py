"""Who may come in, and who still may: tokens, passwords, and the senders of open streams."""

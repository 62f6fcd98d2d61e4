"""Links to chats over REST."""

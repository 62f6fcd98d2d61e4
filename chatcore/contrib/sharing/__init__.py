"""Links under which anybody reads a chat as it was, without signing in."""

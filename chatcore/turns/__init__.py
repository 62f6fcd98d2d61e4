"""Answer a user's message: begin a turn, generate the answer, run tools, and end the turn."""

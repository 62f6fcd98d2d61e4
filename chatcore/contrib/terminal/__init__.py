"""A conversation in the terminal, with this machine or with a server elsewhere: `chatcore chat`."""

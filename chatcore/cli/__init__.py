"""The command line: the script `chatcore`, and the conversation in a terminal."""

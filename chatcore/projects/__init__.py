"""What the chats of a project share: instructions, standing rules and files."""

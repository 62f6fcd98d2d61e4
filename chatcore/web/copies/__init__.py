"""Pages that show a whole chat, or a part of it, to be printed or read by others."""

"""What servers and models do otherwise than their protocol says, one file a quirk."""

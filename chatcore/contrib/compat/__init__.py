"""APIs in the form of other products', so that their clients work with Chatcore unchanged."""

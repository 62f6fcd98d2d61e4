"""Systems that Chatcore follows beside OneClaw's, each a package of its own."""

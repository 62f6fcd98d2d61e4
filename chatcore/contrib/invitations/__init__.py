"""Links that let somebody make one account, once and for some days."""

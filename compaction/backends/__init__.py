"""The host behind small protocols (base.py), and one package for each host that exists."""

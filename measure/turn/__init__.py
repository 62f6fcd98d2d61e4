"""The cost of a turn beside the floor: what a good engineer writes in an afternoon."""

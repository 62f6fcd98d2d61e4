"""The knobs of a policy, in groups: frozen dataclasses with their rules and help texts."""

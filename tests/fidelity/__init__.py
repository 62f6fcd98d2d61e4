"""How much of a talk still reaches the model: python -m tests.fidelity (docs/fidelity.md)."""

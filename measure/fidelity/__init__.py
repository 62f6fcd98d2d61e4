"""How much of a talk still reaches the model: python -m measure.fidelity (docs/fidelity.md)."""

"""How much of a talk still reaches the model: python -m measure.fidelity (README.md)."""

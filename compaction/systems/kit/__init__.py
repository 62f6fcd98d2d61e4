"""What several of the systems share: stages, other tails, and the pass that runs them.

A system of its own is a folder beside this one: `preset.py` adds its settings, and imports
`kit.pipeline` if they need more than the core's pass; `apps.py` imports that module.
"""

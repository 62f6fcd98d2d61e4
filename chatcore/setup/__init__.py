"""An installation that is written down: providers, models, policies and groups as one document."""

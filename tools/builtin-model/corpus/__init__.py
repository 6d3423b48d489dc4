"""The sentences that the built-in model is trained on, all written for this project."""

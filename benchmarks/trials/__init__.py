"""Trainings that are compared on the validation set: what Table 3, the ancestors and ablations share."""

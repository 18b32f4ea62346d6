"""The ancestors: recurrent sequence-to-sequence models, with attention and without (docs/ancestors.md)."""

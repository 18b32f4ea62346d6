"""Constituency parsing (Vaswani et al. 2017, section 6.3): trees as text that a Transformer learns to write."""

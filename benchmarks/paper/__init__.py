"""Tables of the paper, measured on this machine."""

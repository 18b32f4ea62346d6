"""How fast models train, translate and serve, beside other programs."""

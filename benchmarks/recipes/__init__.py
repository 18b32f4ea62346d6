"""What the parts of a recipe are worth, a race beside JoeyNMT, and the page of results."""

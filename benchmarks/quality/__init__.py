"""What translations are good at, beside what one score of a test set tells."""

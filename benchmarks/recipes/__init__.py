"""What the recipes of configs/multi30k come to."""

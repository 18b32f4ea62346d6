"""LiteRT: a model and its beam search as one file, which runs without TensorFlow."""

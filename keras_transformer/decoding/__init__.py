"""Searching for translations: pure functions over one step of the decoder."""

from keras_transformer.decoding.beam import Hypotheses, beam_search
from keras_transformer.decoding.search import search
from keras_transformer.decoding.step import DecoderCache, IncrementalDecoder

__all__ = ["DecoderCache", "Hypotheses", "IncrementalDecoder", "beam_search", "search"]

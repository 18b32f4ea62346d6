"""Searching for translations: pure functions over one step of the decoder."""

from keras_transformer.decoding.beam import beam_search
from keras_transformer.decoding.search import search
from keras_transformer.decoding.state import Hypotheses
from keras_transformer.decoding.step import DecoderState, IncrementalDecoder

__all__ = ["DecoderState", "Hypotheses", "IncrementalDecoder", "beam_search", "search"]

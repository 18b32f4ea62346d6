"""A part of a LiteRT file has one signature and the subgraphs that it calls, by LiteRT's own schema."""

import flatbuffers
import numpy as np
import pytest

from keras_transformer.lite.one_signature import IDENTIFIER, one_signature

schema = pytest.importorskip("ai_edge_litert.schema_py_generated")

CALLS = [[], [(4, 2)], [], [], [(5, 5), (2, 4)], []]  # the loops of each subgraph: their condition and body
STARTS = {"none": 0, "two": 1, "one": 4}  # the first subgraph of each signature
REACHED = {"none": [0], "two": [1, 4, 2, 5], "one": [4, 5, 2]}


@pytest.fixture
def file():
    """A file of six subgraphs, known by their names, and three signatures."""
    model = schema.ModelT(version=3, buffers=[schema.BufferT()])
    model.subgraphs = [schema.SubGraphT(name=f"subgraph {number}", operators=[]) for number in range(len(CALLS))]
    for subgraph, loops in zip(model.subgraphs, CALLS, strict=True):
        subgraph.operators = [operator(schema.AddOptionsT(), "AddOptions")]
        for condition, body in loops:
            options = schema.WhileOptionsT(condSubgraphIndex=condition, bodySubgraphIndex=body)
            subgraph.operators.append(operator(options, "WhileOptions"))
        for condition, body in loops:
            options = schema.IfOptionsT(thenSubgraphIndex=condition, elseSubgraphIndex=body)
            subgraph.operators.append(operator(options, "IfOptions"))
    model.signatureDefs = [
        schema.SignatureDefT(signatureKey=key, subgraphIndex=first, inputs=[], outputs=[])
        for key, first in STARTS.items()
    ]
    builder = flatbuffers.Builder(0)
    builder.Finish(model.Pack(builder), file_identifier=IDENTIFIER)
    return bytearray(builder.Output())


def operator(options, kind):
    return schema.OperatorT(builtinOptionsType=getattr(schema.BuiltinOptions, kind), builtinOptions=options)


@pytest.mark.parametrize("key", STARTS)
def test_a_part_has_what_its_signature_reaches_in_that_order_under_new_numbers(file, key):
    part = schema.ModelT.InitFromPackedBuf(one_signature(file, key), 0)
    assert [(each.signatureKey, each.subgraphIndex) for each in part.signatureDefs] == [(key.encode(), 0)]
    assert [subgraph.name.decode() for subgraph in part.subgraphs] == [f"subgraph {old}" for old in REACHED[key]]
    for subgraph, old in zip(part.subgraphs, REACHED[key], strict=True):
        _, *calling = [each.builtinOptions for each in subgraph.operators]
        loops = [(each.condSubgraphIndex, each.bodySubgraphIndex) for each in calling[: len(calling) // 2]]
        branches = [(each.thenSubgraphIndex, each.elseSubgraphIndex) for each in calling[len(calling) // 2 :]]
        assert loops == branches == [tuple(map(REACHED[key].index, pair)) for pair in CALLS[old]]


def test_what_is_no_file_with_that_signature_is_refused(file):
    with pytest.raises(ValueError, match="no signature three"):
        one_signature(bytearray(file), "three")
    with pytest.raises(ValueError, match="no LiteRT file"):
        one_signature(bytearray(b"no model"), "one")
    with pytest.raises(ValueError, match="no LiteRT file"):
        one_signature(bytearray(), "one")


def test_a_damaged_file_is_refused_or_has_the_signature_still(file):
    numbers = np.random.default_rng(1)
    refused = 0
    for length in range(8, len(file), 16):
        try:
            one_signature(bytearray(file[:length]), "two")
        except ValueError as error:
            refused += "damaged" in str(error) or "signature" in str(error)
    assert refused > len(file) // 32
    for _ in range(200):
        damaged = bytearray(file)
        damaged[8 + numbers.integers(len(file) - 8)] = numbers.integers(256)
        try:
            one_signature(damaged, "two")
        except ValueError:
            refused += 1

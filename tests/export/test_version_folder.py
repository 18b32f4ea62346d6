"""Which signatures a version has, and with which requests it warms up a server."""

import pytest

from export.graph.version_folder import WARM_UP_ROWS, selected, warm_up_batches, write_warm_up_requests
from export.server.version import warm_up_requests
from export.versions import ExportError

SIGNATURES = {"serving_default": 1, "translate": 2, "score": 3}


@pytest.mark.parametrize(
    ("names", "left"),
    [((), ["serving_default", "translate", "score"]), (("score", "serving_default"), ["score", "serving_default"])],
)
def test_all_signatures_are_written_or_those_that_are_named(names, left):
    assert selected(SIGNATURES, names) == {name: SIGNATURES[name] for name in left}


@pytest.mark.parametrize(
    ("names", "reason"),
    [(("serving_default", "b", "a"), "no signature a: .*translate, score"), (("score",), "leaves out serving_default")],
)
def test_a_name_that_is_unknown_or_alone_is_refused(names, reason):
    with pytest.raises(ExportError, match=reason):
        selected(SIGNATURES, names)


class Letters:
    """A tokenizer whose tokens are numbers, with a space between them."""

    def __init__(self, vocab_size):
        self.vocab_size = vocab_size

    def decode(self, ids):
        assert all(0 <= number < self.vocab_size for number in ids)
        return " ".join(map(str, ids))


@pytest.mark.parametrize("vocab_size", [5, 260, 261, 9000])
@pytest.mark.parametrize(("longest", "lengths"), [(1024, [8, 32, 128]), (32, [8, 32]), (20, [8, 20]), (5, [5])])
def test_a_server_warms_up_with_sentences_of_each_length_that_the_version_takes(vocab_size, longest, lengths):
    batches = warm_up_batches(Letters(vocab_size), longest)
    alone, together, full = batches[:-2], batches[-2], batches[-1]
    assert [len(sentence.split()) for sentence in together] == lengths
    assert alone == [[sentence] for sentence in together] and full == together[:1] * WARM_UP_ROWS


def test_each_signature_of_the_version_is_asked_and_no_other(tmp_path):
    (tmp_path / "1").mkdir()
    write_warm_up_requests(tmp_path / "1", [["a"], ["a", "b"]], {"serving_default", "score"})
    requests = list(warm_up_requests(tmp_path / "1"))
    assert [request.model_spec.signature_name for request in requests] == ["serving_default"] * 2 + ["score"]
    assert [list(request.inputs["text"].string_val) for request in requests] == [[b"a"], [b"a", b"b"], [b"a"]]
    assert list(requests[-1].inputs["translation"].string_val) == [b"a"]

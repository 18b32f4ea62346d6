"""A folder of NLLB-200 with a tokenizer.json alone: its SentencePiece model again, or a sentence why there is none."""

import json

import pytest

from keras_transformer.models import hub
from keras_transformer.models.imported.errors import ImportedModelError
from keras_transformer.models.imported.folder import import_folder
from keras_transformer.models.imported.tokenizer_json import spm_of_tokenizer_json
from keras_transformer.pieces.tokenizer import model_proto
from tests.support.hub import Hub, asked
from tests.support.m2m import FAIRSEQ, KINDS, NLLB, NLLB_CODES, m2m_folder, spm, text_pieces, tokenizer_json
from tests.support.texts import TEXTS, random_texts

SPM, JSON = "sentencepiece.bpe.model", "tokenizer.json"
META = {"type": "Metaspace", "replacement": "▁"}
MERGES = tokenizer_json()["model"]["merges"]


def json_alone(folder, **changes):
    """A folder of NLLB-200 with tokenizer.json in place of the SentencePiece model."""
    m2m_folder(folder, NLLB)
    (folder / SPM).unlink()
    (folder / JSON).write_text(json.dumps(tokenizer_json(**changes)), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"merges": [merge.split(" ") for merge in MERGES]},
        {"pre_tokenizer": META | {"prepend_scheme": "always", "split": True}},
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, META]}},
        {"vocab": {piece: number for number, piece in enumerate(text_pieces())}},
    ],
    ids=["transformers 4", "merges as lists", "transformers 5", "two steps", "languages apart"],
)
def test_the_sentencepiece_model_is_the_one_from_which_it_was_made(tmp_path, changes):
    found, expected = (
        import_folder(json_alone(tmp_path / "json", **changes)),
        import_folder(m2m_folder(tmp_path / "m", NLLB)),
    )
    assert found.languages == expected.languages and found.tokenizer.pieces() == expected.tokenizer.pieces()
    texts = [*TEXTS, *random_texts(100)]
    assert found.tokenizer.encode_batch(texts) == expected.tokenizer.encode_batch(texts)
    ids = expected.tokenizer.encode_batch(texts)
    assert [*map(found.tokenizer.decode, ids)] == [*map(expected.tokenizer.decode, ids)]
    again, there = (model_proto(each) for each in (spm_of_tokenizer_json(tmp_path / "json" / JSON, FAIRSEQ), spm()))
    assert [(each.piece, each.score, each.type) for each in again.pieces] == [
        (each.piece, each.score, each.type) for each in there.pieces
    ]


def test_rules_for_characters_may_be_missing(tmp_path):
    folder = json_alone(tmp_path / "m", normalizer=None)
    assert model_proto(spm_of_tokenizer_json(folder / JSON, FAIRSEQ)).normalizer_spec.precompiled_charsmap == b""


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"type": "Unigram"}, "model.type is 'Unigram'"),
        ({"byte_fallback": True}, "model.byte_fallback is True"),
        ({"ignore_merges": True}, "model.ignore_merges is True"),
        ({"fuse_unk": False}, "model.fuse_unk is False"),
        ({"dropout": 0.1}, "model.dropout is 0.1"),
        ({"pre_tokenizer": {"type": "ByteLevel"}}, "its pre_tokenizer is not one Metaspace"),
        ({"pre_tokenizer": None}, "its pre_tokenizer is not one Metaspace"),
        ({"pre_tokenizer": META | {"prepend_scheme": "never"}}, "its pre_tokenizer is not one Metaspace"),
        ({"normalizer": {"type": "Lowercase"}}, "its normalizer has a 'Lowercase'"),
        ({"normalizer": {"type": "Replace", "pattern": {"String": "a"}, "content": " "}}, "has a 'Replace'"),
        ({"merges": MERGES[1:]}, "its merges are not those of its pieces in their order"),
        ({"merges": MERGES[::-1]}, "its merges are not those of its pieces in their order"),
        ({"merges": [*MERGES, "x y"]}, "its merges are not those of its pieces in their order"),
        ({"vocab": {piece: 2 * number for number, piece in enumerate(text_pieces())}}, "the ids of its pieces have"),
    ],
)
def test_a_tokenizer_that_divides_text_otherwise_is_refused(tmp_path, changes, why):
    with pytest.raises(
        ImportedModelError, match=r"There is no sentencepiece\.bpe\.model either\. Copy it from"
    ) as error:
        import_folder(json_alone(tmp_path / "m", **changes))
    assert why in str(error.value) and "facebook/nllb-200-distilled-600M" in str(error.value)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"model": 3}', '{"model": {"type": "BPE", "vocab": 3}}'])
def test_a_damaged_one_is_one_sentence(tmp_path, content):
    folder = json_alone(tmp_path / "m")
    (folder / JSON).write_text(content)
    with pytest.raises(ImportedModelError, match=r"tokenizer\.json is") as error:
        import_folder(folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", KINDS)
def test_without_either_the_sentence_says_where_the_missing_file_is(tmp_path, kind):
    folder = m2m_folder(tmp_path / "m", kind)
    (folder / SPM).unlink()
    with pytest.raises(ImportedModelError, match="has no sentencepiece.bpe.model, .* Copy it from the model that this"):
        import_folder(folder)


def test_it_is_downloaded_from_the_hub(tmp_path):
    folder = json_alone(tmp_path / "m")
    with asked(Hub(), tmp_path / "cache") as local:
        local.add("me/tuned", {path.name: path.read_bytes() for path in folder.iterdir()})
        assert import_folder(hub.download("hf://me/tuned")).languages == import_folder(folder).languages


@pytest.mark.release
def test_lines_are_divided_as_by_transformers_which_wrote_it(tmp_path):
    transformers = pytest.importorskip("transformers", reason="`make peers` installs transformers")
    from tests.support.imported import hard_lines

    folder = m2m_folder(tmp_path / "m", NLLB)
    names = {"src_lang": "eng_Latn", "tgt_lang": "deu_Latn", "extra_special_tokens": NLLB_CODES}
    theirs = transformers.NllbTokenizer.from_pretrained(folder, **names)
    (folder / SPM).unlink()
    (folder / "special_tokens_map.json").unlink()
    theirs.save_pretrained(folder)
    assert not (folder / SPM).exists()
    theirs, ours = transformers.AutoTokenizer.from_pretrained(folder, **names), import_folder(folder).tokenizer
    pieces, different = ours.pieces(), []
    for text in (lines := hard_lines(*FAIRSEQ)):
        expected = theirs.convert_ids_to_tokens(theirs(text, add_special_tokens=False)["input_ids"])
        ids = ours.encode(text)
        expected = expected[:-1] if expected[-1:] == ["▁"] else expected  # a space at an end, as in test_m2m_oracle.py
        if [pieces[each] for each in ids] != expected:
            different.append((text, expected))
    assert len(lines) == 200 and not different

"""transformers opens an exported folder, and computes, divides and searches as the run does."""

import gzip

import numpy as np
import pytest

import keras_transformer as kt
from export import __main__ as command
from keras_transformer.ground.tokens import BOS, EOS, PAD
from keras_transformer.models.imported.folder import import_folder, write_run
from keras_transformer.pieces.sources import padded
from tests.support.commands import invoke
from tests.support.marian import MARIAN
from tests.support.marian import lines as marian_lines
from tests.support.peers import Peer, needs
from tests.support.places import ROOT
from tests.support.runs import SENTENCES, random_run

pytestmark = [pytest.mark.release, needs("transformers", "torch")]

transformers, torch = Peer("transformers"), Peer("torch")

TRAINED = ROOT.parent / "shared" / "runs" / "multi30k_en_de"
MULTI30K = ROOT.parent / "shared" / "data" / "multi30k"
ODD = ["Wörter ☃ 日本語", "tab\there", "A  double space", "", " ", "ﬁ Ｆｕｌｌ ①"]
VARIANTS = {
    "as the paper has it": {},
    "of Hugging Face's epsilon": {"norm_epsilon": 1e-5},
    "biases": {"attention_bias": True, "logits_bias": True, "norm_epsilon": 1e-5},
    "separate embeddings": {"shared_embeddings": False, "logits_bias": True, "norm_epsilon": 1e-5},
    "Marian's sinusoids": {"sinusoids": "tensor2tensor", "norm_epsilon": 1e-5},
    "layers": {"encoder_layers": 3, "decoder_layers": 2, "norm_epsilon": 1e-5},
    **{name: {"activation": name, "norm_epsilon": 1e-5} for name in ("gelu", "swish", "silu")},
}


def exported(run, folder, *options):
    """transformers' model and tokenizer of a run."""
    result = invoke(command.app, run, "--to", folder, "--format", "huggingface", "--no-check", *options)
    assert result.exit_code == 0, result.output
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder)
    assert type(model) is transformers.MarianMTModel
    return model.eval(), transformers.AutoTokenizer.from_pretrained(folder)


def lines_of(name, count):
    with gzip.open(MULTI30K / name, "rt", encoding="utf-8") as file:
        return [next(file).rstrip("\n") for _ in range(count)]


def assert_same_logits(model, theirs, sources, targets, atol):
    """Teacher forced: their decoder starts from `decoder_start_token_id`, ours from BOS."""
    source, target = padded(sources), padded([[*ids, EOS] for ids in targets])
    start = np.concatenate([np.full((len(target), 1), BOS, np.int32), target[:, :-1]], axis=1)
    segments = {"source_segments": np.int32(source != PAD), "target_segments": np.int32(target != PAD)}
    ours = np.asarray(model({"source_ids": source, "target_ids": start, **segments}, training=False))
    tensors = [torch.tensor(array.astype(int)) for array in (source, source != PAD, start)]
    with torch.no_grad():
        logits = theirs(**dict(zip(("input_ids", "attention_mask", "decoder_input_ids"), tensors, strict=True))).logits
    np.testing.assert_allclose(ours[target != PAD], logits.numpy()[target != PAD], atol=atol, rtol=0)


def generated(theirs, tokenizer, lines, **options):
    batch = tokenizer(lines, return_tensors="pt", padding=True)
    with torch.no_grad():
        return tokenizer.batch_decode(theirs.generate(**batch, **options), skip_special_tokens=True)


@pytest.mark.parametrize("variant", VARIANTS)
def test_its_logits_are_those_of_the_run(variant, tmp_path):
    run = random_run(tmp_path / "run", **VARIANTS[variant])
    theirs, _ = exported(run, tmp_path / "to")
    model, tokenizer = kt.load_run(run)
    ids = tokenizer.encode_batch(SENTENCES)
    is_same_epsilon = model.model_config.norm_epsilon == 1e-5
    # wide random weights make logits of some hundreds
    assert_same_logits(model, theirs, [[*line, EOS] for line in ids], ids[::-1], 2e-4 if is_same_epsilon else 2e-2)


@pytest.mark.parametrize("variant", ["biases", "Marian's sinusoids"])
def test_it_searches_as_the_run_does(variant, tmp_path):
    run = random_run(tmp_path / "run", **VARIANTS[variant])
    theirs, tokenizer = exported(run, tmp_path / "to")
    for beam_size in (1, 3):
        options = kt.SearchOptions(beam_size=beam_size, length_penalty=0.0)
        expected = kt.Translator.load(run, options).translate(SENTENCES)
        found = generated(theirs, tokenizer, SENTENCES, num_beams=beam_size, length_penalty=0.0, max_new_tokens=100)
        ended = [number for number, translation in enumerate(expected) if not translation.is_cut]
        assert len(ended) > 3
        assert [found[number] for number in ended] == [expected[number].text.strip() for number in ended]


needs_trained = pytest.mark.skipif(
    not (TRAINED.is_dir() and MULTI30K.is_dir()), reason=f"there is no {TRAINED} or no {MULTI30K}"
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return exported(TRAINED, tmp_path_factory.mktemp("trained") / "to")


@needs_trained
def test_the_tokenizer_of_a_trained_run_divides_alike(trained):
    _, tokenizer = kt.load_run(TRAINED)
    lines = [*lines_of("val.en.gz", 200), *lines_of("val.de.gz", 200), *ODD]
    assert [trained[1](line)["input_ids"] for line in lines] == [[*tokenizer.encode(line), EOS] for line in lines]
    ids = tokenizer.encode_batch(lines)
    texts = trained[1].batch_decode(ids, skip_special_tokens=True)
    assert texts == [tokenizer.decode(line).strip() for line in ids]


@needs_trained
def test_the_logits_of_a_trained_run_differ_by_what_the_epsilon_does(trained):
    model, tokenizer = kt.load_run(TRAINED)
    sources, targets = (tokenizer.encode_batch(lines_of(f"val.{language}.gz", 40)) for language in ("en", "de"))
    assert_same_logits(model, trained[0], [[*line, EOS] for line in sources], targets, 2e-4)


@needs_trained
@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_trained_run_translates_alike(trained, beam_size):
    lines = lines_of("val.en.gz", 100)
    expected = kt.Translator.load(TRAINED, kt.SearchOptions(beam_size, length_penalty=0.0)).translate(lines)
    found = generated(*trained, lines, num_beams=beam_size, length_penalty=0.0, max_new_tokens=80)
    assert found == [translation.text for translation in expected]


@needs_trained
def test_generate_searches_with_the_run_s_options(tmp_path):
    theirs, _ = exported(TRAINED, tmp_path / "to", "--beam-size", 3, "--length-penalty", 0.5, "--extra-length", 20)
    settings = theirs.generation_config
    assert (settings.num_beams, settings.length_penalty, settings.max_length) == (3, 0.5, 533)
    assert (settings.forced_eos_token_id, settings.decoder_start_token_id) == (EOS, BOS)


def test_a_model_that_marian_trained_is_exact_in_transformers(tmp_path):
    """Two SentencePiece models, Marian's sinusoids. `MarianMTModel` computes others unless the file holds a table."""
    write_run(import_folder(MARIAN / "self-attention.npz"), tmp_path / "run")
    theirs, tokenizer = exported(tmp_path / "run", tmp_path / "to")
    lines = marian_lines("test.en")
    model, ours = kt.load_run(tmp_path / "run")
    assert [tokenizer(line)["input_ids"] for line in lines] == [[*ours.encode(line), EOS] for line in lines]
    sources, targets = ours.encode_batch(lines), ours.encode_target_batch(marian_lines("test.de"))
    assert_same_logits(model, theirs, [[*line, EOS] for line in sources], targets, 2e-4)
    for beam_size in (1, 6):
        expected = kt.Translator(model, ours, kt.SearchOptions(beam_size, length_penalty=0.0)).translate(lines)
        found = generated(theirs, tokenizer, lines, num_beams=beam_size, length_penalty=0.0, max_new_tokens=100)
        assert found == [translation.text for translation in expected]

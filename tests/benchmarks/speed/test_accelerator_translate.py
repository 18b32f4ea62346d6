"""The benchmark of translation on JAX: its arithmetic, its table, and whole runs at toy size."""

import json

import pytest

from benchmarks.speed.accelerator_translate import HEAD, Translated, page, table
from benchmarks.speed.on_accelerator.translation import Case, Round, Translation, needed_bytes, source_ids
from benchmarks.speed.processes import ContestantProcess
from benchmarks.speed.translate_work import SOURCE_TOKENS, TARGET_TOKENS
from keras_transformer.config import preset
from keras_transformer.ground.tokens import EOS, SPECIAL
from keras_transformer.model import Transformer
from tests.benchmarks.speed.test_accelerator import CPU, GPU
from tests.support.models import SMALL
from tests.support.processes import XLA_FLAGS, python, refusing

# the arithmetic


def matrices(*parts):
    """Weights in the matrices of a model whose path has one of these names."""
    weights = [weight for weight in Transformer(SMALL).weights if len(weight.shape) == 2]
    return sum(weight.shape[0] * weight.shape[1] for weight in weights if any(part in weight.path for part in parts))


def test_without_rows_the_bytes_are_those_of_the_matrices_the_decoders_once_a_token():
    of_memory = matrices("memory_attention/key", "memory_attention/value")
    once = matrices("encoder_block") + of_memory
    a_token = matrices("decoder_block", "embedding") - of_memory
    assert once > 0 and of_memory > 0
    weights = needed_bytes(SMALL, Case(1, 0), "float32")
    assert weights == 4 * (once + TARGET_TOKENS * a_token)
    assert needed_bytes(SMALL, Case(1, 0), "bfloat16") * 2 == weights == 4 * needed_bytes(SMALL, Case(1, 0), "int8")


def test_each_sentence_reads_its_source_at_every_token_and_each_hypothesis_its_own_past():
    def of_rows(beam_size, rows, precision="float32"):
        return needed_bytes(SMALL, Case(beam_size, rows), precision) - needed_bytes(SMALL, Case(1, 0), precision)

    width = 4 * 2 * SMALL.d_model * SMALL.decoder_layers  # of a key and a value in each block
    past = sum(len(range(token)) for token in range(1, TARGET_TOKENS + 1))
    assert of_rows(1, 1) == width * (SOURCE_TOKENS * TARGET_TOKENS + past)
    assert of_rows(4, 3) - 3 * of_rows(1, 1) == 3 * 3 * width * past
    assert of_rows(1, 1, "int8_float16") * 2 == of_rows(1, 1, "int8") == of_rows(1, 1)


def test_sources_are_pieces_and_eos():
    ids = source_ids(50, 7)
    assert ids.shape == (7, SOURCE_TOKENS) and (ids[:, -1] == EOS).all()
    assert ids[:, :-1].min() > max(*SPECIAL, EOS) and ids.max() < 50


# the table


def test_the_median_round_counts_and_the_share_is_of_the_measured_copies():
    case = Case(4, 100)
    rounds = tuple(Round(seconds, "float16") for seconds in (0.5, 9.0, 0.1))
    cells = dict(zip(HEAD, Translated("base", "ctranslate2_auto", case, rounds).row(GPU), strict=True))
    assert cells["tokens/s"] == f"{100 * TARGET_TOKENS / 0.5:,.0f}"
    assert cells["ms per token"] == f"{500 / TARGET_TOKENS:.2f}" and cells["precision"] == "float16"
    share = needed_bytes(preset("base"), case, "float16") / 0.5 / GPU.bandwidth
    assert cells["share of copies"] == f"{share:.1%}"


def test_a_case_without_rounds_is_in_the_table_with_the_reason():
    failed = Translated("base", "ours_float32", Case(4, 512), failure="RESOURCE_EXHAUSTED: a|b")
    lines = table([failed], GPU).splitlines()
    assert [line.count("|") for line in lines] == [len(HEAD) + 1] * 3
    assert "| 512 | not measured: RESOURCE_EXHAUSTED: a/b |" in lines[-1]


@pytest.mark.parametrize(("chip", "is_stated"), [(CPU, True), (GPU, False)])
def test_a_page_from_a_cpu_states_that_there_was_no_accelerator(chip, is_stated):
    assert ("No accelerator was found" in page(chip, [], "python", 3)) == is_stated


# whole runs


@pytest.mark.release
def test_it_runs_without_tensorflow_and_a_contestant_that_is_not_installed_is_a_row(tmp_path):
    pytest.importorskip("jax", reason="jax is not installed: pip install -r requirements-peers.txt")
    absent = refusing(tmp_path / "refused", "tensorflow", "tensorflow_text", "sentencepiece", "torch", "ctranslate2")
    options = "--sizes", "tiny", "--beams", "2", "--rows", "3", "--rounds", "2"
    command = "-m", "benchmarks.speed.accelerator_translate", "--to", tmp_path, *options
    contestants = "--contestants", "ours_bfloat16,ctranslate2_auto"
    process = python(*command, *contestants, PYTHONPATH=absent, JAX_PLATFORMS="cpu", XLA_FLAGS=XLA_FLAGS)
    assert process.returncode == 0, process.stderr[-2000:]
    result = json.loads((tmp_path / "accelerator_translate.json").read_text(encoding="utf-8"))
    ours, peer = result["results"]
    assert len(ours["rounds"]) == 2 and ours["tokens_per_second"] > 0 and ours["case"] == {"beam_size": 2, "rows": 3}
    assert "ctranslate2 is refused" in peer["failure"] and not peer["rounds"]
    written = (tmp_path / "accelerator_translate.md").read_text(encoding="utf-8")
    assert written.count("| tiny |") == 2 and "ctranslate2 is refused" in written


@pytest.mark.release
def test_both_have_the_same_weights_and_so_the_same_greedy_outputs():
    for package in ("jax", "ctranslate2"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install -r requirements-peers.txt")
    case, config, outputs = Case(1, 16), SMALL.replace(vocab_size=300, d_model=32), {}
    for name in ("ours_float32", "ctranslate2_float32"):
        with ContestantProcess(Translation, name, config, [case]) as process:
            process.wait_until_ready()
            outputs[name] = process.ask("outputs", case)
    ours, theirs = outputs.values()
    assert [row[:-1] for row in ours] == [row[:-1] for row in theirs]
    assert all(len(row) == TARGET_TOKENS and row[-1] == EOS for row in ours)


@pytest.mark.release
def test_a_case_that_fails_is_a_reason_and_the_others_go_on():
    pytest.importorskip("jax", reason="jax is not installed: pip install -r requirements-peers.txt")
    fine, wrong = Case(1, 2), Case(1, 10**15)  # more rows than any memory has room for
    with ContestantProcess(Translation, "ours_float32", SMALL, [wrong, fine]) as process:
        process.wait_until_ready()
        assert "Memory" in process.ask("round", wrong)
        assert process.ask("round", fine).seconds > 0

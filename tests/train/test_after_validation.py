"""What training inspects after each validation: which sentences, and when there is nothing to draw."""

from tests.support.events import read_events, read_pictures
from tests.support.runs import metrics_of
from train.validation.after_validation import SHORT, short_pairs


class Words:
    """A tokenizer whose pieces are words."""

    def encode(self, line):
        return [4] * len(line.split())

    encode_target = encode


def words(count):
    return " ".join(["w"] * count)


LONG, SHORTEST, FITS, ALSO = (words(SHORT), "w"), ("w", "w"), (words(SHORT - 1), "w"), ("w", words(SHORT - 1))


def test_pictures_are_of_the_first_pairs_whose_sides_are_short_with_their_end_of_sentence():
    pairs = [LONG, FITS, ("w", words(SHORT)), ALSO, SHORTEST]
    assert short_pairs(pairs, Words(), 2) == [FITS, ALSO]
    assert short_pairs(pairs, Words(), 9) == [FITS, ALSO, SHORTEST]
    assert short_pairs(pairs, Words(), 0) == short_pairs([LONG], Words(), 1) == []


# in a run, which validates after steps 2, 4 and 5


def test_every_validation_is_inspected(finished):
    measures = ["memory_1_head_1/next", "encoder_1_head_2/end", "decoder_1_head_1/begin", "decoder_1_head_2/entropy"]
    sizes = ["residual_rms/encoder_block_1", "residual_rms/decoder_block_1"]
    for name in ["samples", *sizes, *(f"attention/{measure}" for measure in measures)]:
        assert [line["step"] for line in metrics_of(finished[1]) if f"validation/{name}" in line] == [2, 4, 5]


def test_tensorboard_has_sample_translations_with_what_changed(finished):
    texts = read_events(finished[1] / "tensorboard")["validation/samples"]
    assert [step for step, _ in texts] == [2, 4, 5]
    first, *others = (text.splitlines() for _, text in texts)
    assert first[:2] == ["| chrF | source | reference | translation |", "|---|---|---|---|"]
    assert len(first) == 2 + 5 + 2  # five fixed sentences, the worst and the best
    assert [lines[0].split(":")[0] for lines in others] == ["Compared with step 2", "Compared with step 4"]


def test_tensorboard_has_a_picture_of_attention_per_kind_and_sentence(finished):
    pictures = read_pictures(finished[1] / "tensorboard")
    kinds = {name.removeprefix("validation/attention_pictures/").rpartition("_sentence_")[0] for name in pictures}
    assert kinds == {"1_memory", "2_encoder", "3_decoder"} and len(pictures) in (3, 6, 9)
    assert all([step for step, *_ in shown] == [2, 4, 5] for shown in pictures.values())

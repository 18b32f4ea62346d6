"""The comparison of decoders: turns are interleaved, and a ratio is the SSRU's share of the time."""

from benchmarks.speed.decoder_layers import table, take_turns


def test_decoders_take_turns_and_the_first_turn_does_not_count():
    turns = []
    works = {name: ((lambda name=name: turns.append(name)), 2) for name in "ab"}
    found = take_turns(works, rounds=2)
    assert turns == ["a", "b"] * 3
    assert all(wall >= 0 and used >= 0 for wall, used in found.values())


def test_a_row_has_milliseconds_processor_time_and_the_ratio_of_both():
    row = table(128, {"work": {"self_attention": (0.02, 0.04), "ssru": (0.01, 0.03)}}).splitlines()[2]
    assert row == "| work | 20.0 (40.0) | 10.0 (30.0) | 0.50 (0.75) |"

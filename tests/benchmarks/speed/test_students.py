"""The benchmark of models that decode fast: its lines and its table."""

from benchmarks.speed.students import ENGINES, MODELS, SOURCE, shortened, table


def test_a_source_has_as_many_tokens_as_it_says_with_its_end():
    line = " ".join(f"w{number}" for number in range(40))
    assert len(shortened(line).split()) + 1 == SOURCE and line.startswith(shortened(line))


def test_a_share_is_of_the_first_model_without_a_shortlist_in_the_same_precision():
    seconds = {
        (model, shortlist, engine): 0.001 * (8 - 2 * place - (shortlist == "on")) * (4 if engine == "litert" else 1)
        for place, model in enumerate(MODELS)
        for shortlist in ("off", "on")
        for engine in ENGINES
    }
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table(seconds).splitlines()[2:]]
    assert [row[:2] for row in rows] == [[model, shortlist] for model in MODELS for shortlist in ("off", "on")]
    assert rows[0][2:] == ["32.00", "1.00", "8.00", "1.00"]
    assert rows[3][2:] == ["20.00", "0.62", "5.00", "0.62"]

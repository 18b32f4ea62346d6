"""The options of a search on the command line: those of the table, with its types, texts and defaults."""

import typer

from export.graph.request import PREFIX, inputs_of
from keras_transformer.commands.options import SearchArguments, takes_search_options
from keras_transformer.commands.translate import app
from keras_transformer.search.options import OPTIONS, SearchOptions
from tests.support.commands import invoke
from tests.support.searches import OTHER_VALUES


def command_of(*names, **defaults):
    """A command that prints what it gets."""
    command = typer.Typer(add_completion=False)

    @command.command()
    @takes_search_options(*names, **defaults)
    def main(run: str, search: SearchArguments, quiet: bool = False):
        print(run, quiet, search.values, sorted(search.typed))

    return command


def options_of(command):
    """The options of a command, by the name of its parameter."""
    return {option.name: option for option in typer.main.get_command(command).params}


def words_of(values):
    """Values of options, as they are typed."""
    return [word for name, value in values.items() for word in (f"--{name.replace('_', '-')}", value)]


def test_every_option_is_offered_by_translate_and_by_the_served_graph_or_has_a_reason_why_not():
    of_command = options_of(app)
    assert set(OPTIONS) <= set(of_command)
    served = {each.name for each in inputs_of(SearchOptions(), 46)} | {PREFIX.name}
    assert served - {"target_prefix"} == {name for name, option in OPTIONS.items() if not option.not_served}
    assert served <= set(of_command)


def test_an_option_has_the_default_and_help_of_its_row():
    of_command = options_of(app)
    for name, option in OPTIONS.items():
        shown = of_command[name]
        assert shown.default == option.default
        assert shown.help.replace("--", "").replace("-", "_") == option.help.replace("--", "").replace("-", "_")
    assert "at most --beam-size" in of_command["n_best"].help


def test_an_option_with_choices_takes_them_alone_and_names_them_to_who_types_another():
    command, with_choices = command_of(), [option for option in OPTIONS.values() if option.choices]
    assert {option.name for option in with_choices} == {"length_normalization", "shortlist"}
    for option in with_choices:
        for choice in option.choices:
            assert f"'{option.name}': '{choice}'" in invoke(command, "here", *words_of({option.name: choice})).stdout
        refused = invoke(command, "here", *words_of({option.name: "another"}))
        assert refused.exit_code != 0
        assert all(word in refused.stderr for word in ("another", *option.choices))


def test_a_command_gets_all_options_in_one_argument_and_knows_which_were_typed():
    result = invoke(command_of(), "here", *words_of(OTHER_VALUES), "--quiet")
    assert result.stdout == f"here True {OTHER_VALUES} {sorted(OTHER_VALUES)}\n"
    defaults = {name: option.default for name, option in OPTIONS.items()}
    assert invoke(command_of(), "here").stdout == f"here False {defaults} []\n"


def test_a_command_may_take_some_options_and_have_its_own_defaults():
    command = command_of("beam_size", "length_penalty", beam_size=8)
    assert invoke(command, "here").stdout == "here False {'beam_size': 8, 'length_penalty': 0.6} []\n"
    assert set(options_of(command)) == {"run", "beam_size", "length_penalty", "quiet"}


def test_a_runs_own_options_are_the_defaults_of_what_was_not_typed():
    search = SearchArguments({"beam_size": 4, "length_penalty": 0.6}, frozenset(["beam_size"]))
    assert search.with_run_defaults({"beam_size": 7, "length_penalty": 0.1, "extra_length": 9}) == {
        "beam_size": 4,
        "length_penalty": 0.1,
        "extra_length": 9,
    }
    assert search.with_run_defaults({}) == search.values

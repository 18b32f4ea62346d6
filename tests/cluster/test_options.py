"""The options of a search are inputs of an export if they are typed."""

import inspect

from cluster.options import takes_inputs


def test_an_option_that_is_typed_is_an_input_although_it_is_0():
    @takes_inputs("length_penalty", "beam_size")
    def command(search):
        return search

    assert command(length_penalty=0.0, beam_size=None) == (("length_penalty", 0.0),)


def test_how_many_translations_there_are_is_for_the_command_to_say_and_the_order_of_inputs_is_that_of_letters():
    @takes_inputs()
    def command(search):
        return search

    names = [name for name in inspect.signature(command).parameters]
    assert "beam_size" in names and "n_best" not in names and "search" not in names
    assert command(**dict.fromkeys(names, 1)) == tuple((name, 1) for name in sorted(names))
    assert command(**dict.fromkeys(names) | {"temperature": 0.0}) == (("temperature", 0.0),)

"""The options of a search are inputs of an export if they are typed."""

from cluster.options import takes_inputs


def test_an_option_that_is_typed_is_an_input_although_it_is_0():
    @takes_inputs("length_penalty", "beam_size")
    def command(search):
        return search

    assert command(length_penalty=0.0, beam_size=None) == (("length_penalty", 0.0),)

"""`python -m train.evaluate RUN --source FILE --reference FILE`: translate and score."""

import pathlib
from typing import Annotated

import typer

from keras_transformer.config import ConfigError, SearchOptions

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    run: Annotated[str, typer.Argument(help="A run folder.")],
    source: Annotated[str, typer.Option(help="Sentences to translate, one a line; .gz is unpacked.")] = "",
    reference: Annotated[str, typer.Option(help="Their reference translations, line by line.")] = "",
    tokenised: Annotated[
        bool, typer.Option("--tokenised", help="Score Moses-tokenised, lower-cased text instead of raw text.")
    ] = False,
    beam_size: Annotated[int, typer.Option(help="1 is greedy search.")] = SearchOptions.beam_size,
    length_penalty: Annotated[
        float, typer.Option(help="The exponent alpha; 0 is none.")
    ] = SearchOptions.length_penalty,
    batch_size: Annotated[int, typer.Option(help="Sentences searched together.")] = 64,
    output: Annotated[str, typer.Option(help="Where to write the translations.")] = "",
):
    """BLEU and chrF with sacreBLEU's signatures, and the share of exact translations.

    Without --source and --reference, the test set of the run's own configuration (validation, if it has none).
    """
    from keras_transformer.console import exit_codes, prepare_process, quiet_start

    prepare_process(is_long=True)
    with exit_codes():
        from train.config import load_config

        if bool(source) != bool(reference):
            raise ConfigError("--source and --reference belong together: give both, or neither.")
        with quiet_start():
            from keras_transformer.translator import Translator
            from train.evaluation.bleu import score

        translator = Translator.load(run, SearchOptions(beam_size, length_penalty), batch_size=batch_size)
        config = load_config(pathlib.Path(run) / "config.toml")
        pairs = pairs_of_files(source, reference) if source else list(pairs_of_run(config))
        texts = [translation.text for translation in translator.translate([pair[0] for pair in pairs])]
        if output:
            write_lines(output, texts)
        language = config.data.target_language if tokenised else None
        scores = score(texts, [pair[1] for pair in pairs], language)
    print("\n".join(scores.lines()))


def pairs_of_run(config):
    from train.data.prepare import load_corpus

    corpus = load_corpus(config.data)
    return corpus.test or corpus.validation


def pairs_of_files(source, reference):
    """All lines, empty ones too: a test set is scored whole. Raises CorpusError if there is none."""
    from train.data.corpus import CorpusError
    from train.data.files import read_aligned

    pairs = list(read_aligned(pathlib.Path(source), pathlib.Path(reference)))
    if not pairs:
        raise CorpusError(f"{source} and {reference} are empty: there is nothing to score.")
    return pairs


def write_lines(path, texts):
    from keras_transformer.console import on_one_line

    try:
        pathlib.Path(path).write_text("".join(f"{on_one_line(text)}\n" for text in texts), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--output {path} cannot be written: {error.strerror}.") from None


if __name__ == "__main__":
    app()

"""transformers opens an exported M2M-100, NLLB-200 or mBART, and computes, divides and translates as the run does."""

import pytest

from tests.support import m2m, mbart
from tests.support.exchange import assert_transformers_computes_as, exported, tuned
from tests.support.mbart import FIFTY, ONE_TARGET, UNSCALED
from tests.support.peers import needs

pytestmark = [pytest.mark.release, needs("transformers", "torch")]


# weights are STRONG, so that rounding is too
@pytest.mark.parametrize("kind", m2m.KINDS)
def test_transformers_computes_what_a_run_of_m2m_does(kind, tmp_path):
    run = tuned(m2m.m2m_folder(tmp_path / "there", kind, m2m.STRONG), tmp_path / "run")
    result = exported(run, tmp_path / "out")
    assert result.exit_code == 0, result.output
    pair = ("en", "de") if kind == m2m.M2M else ("eng_Latn", "deu_Latn")
    assert_transformers_computes_as(run, tmp_path / "out", pair, 3e-4)


@pytest.mark.parametrize("kind", [FIFTY, ONE_TARGET, UNSCALED])
def test_transformers_computes_what_a_run_of_mbart_does(kind, tmp_path):
    never = mbart.PAIR[1] if kind == ONE_TARGET else None  # training leaves nothing of a class that no text has
    run = tuned(mbart.mbart_folder(tmp_path / "there", kind, m2m.STRONG), tmp_path / "run", never)
    result = exported(run, tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert_transformers_computes_as(run, tmp_path / "out", mbart.PAIR, 6e-4, is_told=kind != ONE_TARGET)

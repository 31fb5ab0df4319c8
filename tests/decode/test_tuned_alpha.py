"""alpha.json between the stages tune and translate."""

import re
from pathlib import Path

import pytest

from convs2s.config.translate import TranslateSection
from convs2s.decode.length_normalization import fix_alpha, write_alpha
from tests.decode.parrot import TRANSLATE

SECTION = TranslateSection.model_validate(TRANSLATE.model_dump())


def test_a_number_in_the_params_wins(tmp_path: Path) -> None:
    """It needs no file; the other values do not change."""
    assert fix_alpha(SECTION, tmp_path / "missing.json") == TRANSLATE


def test_a_tuned_alpha_comes_from_the_file(tmp_path: Path) -> None:
    """The value is exactly the one written."""
    write_alpha(tmp_path / "alpha.json", {"alpha": 0.7, "development_bleu": 12.3})
    tuned = fix_alpha(SECTION.model_copy(update={"alpha": "tuned"}), tmp_path / "alpha.json")
    assert tuned == TRANSLATE.model_copy(update={"alpha": 0.7})


@pytest.mark.parametrize("content", ["{}\n", "[]\n", '{"alpha": -1}\n', "{\n"])
def test_a_file_without_alpha_is_named(tmp_path: Path, content: str) -> None:
    """The file was written when translate.alpha was a number, or it is damaged."""
    path = tmp_path / "alpha.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(
        ValueError, match=rf"is tuned: expected in {re.escape(str(path))} the alpha chosen by"
    ):
        fix_alpha(SECTION.model_copy(update={"alpha": "tuned"}), path)

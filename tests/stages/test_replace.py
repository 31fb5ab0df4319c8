"""Stage replace: hypotheses -> plain text, and text with unknown words replaced."""

from pathlib import Path

import pytest

from convs2s.config.results import ReplaceParams
from convs2s.decode.translations import Hypothesis, write_hypotheses
from convs2s.decode.unknown_replacement import Unknown
from convs2s.text.alignment.dictionary import Entry, write_dictionary
from pipelines.stages import replace
from tests.decode.parrot import TOKENIZE


def run(folder: Path, enabled: bool) -> dict[str, str]:
    """Run the stage; return its files' text by name."""
    paths = [folder / name for name in ("translations", "alignment", "out")]
    replace.run(ReplaceParams(enabled=enabled), TOKENIZE, ("en", "de"), "7", *paths)
    return {path.name: path.read_text(encoding="utf-8") for path in (folder / "out" / "7").iterdir()}


def test_unknown_words_are_replaced_in_a_second_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The dictionary comes first, then copying; only best hypotheses are written, one line each.

    Switched off, there is plain text only: the replaced text of an earlier run is removed.
    """
    words = ["Ein", "<unk>", "namens", "<unk>", "."]
    unknowns = [Unknown(1, 1, False), Unknown(3, 3, True)]
    best = Hypothesis([*words, "</s>"], words, -1.0, -0.2, [0, 1, 2, 3, 4, 4], unknowns)
    second = Hypothesis(["</s>"], [], -9.0, -9.0, [0], [])
    sentences = [(["A", "dog", "named", "Wuffi", "."], [best, second])]
    sentences += [([], [Hypothesis([], [], 0.0, 0.0, [], [])])]
    (tmp_path / "translations" / "7").mkdir(parents=True)
    write_hypotheses(tmp_path / "translations" / "7" / "hypotheses.jsonl", sentences)
    write_dictionary(tmp_path / "alignment" / "dictionary.tsv", [Entry("dog", "Hund", 3, 4)])
    assert run(tmp_path, enabled=True) == {
        "plain.txt": "Ein <unk> namens <unk>.\n\n",
        "plain.tok.txt": "Ein <unk> namens <unk> .\n\n",
        "replaced.txt": "Ein Hund namens Wuffi.\n\n",
        "replaced.tok.txt": "Ein Hund namens Wuffi .\n\n",
        "replacements.tsv": (
            "line\tword\tsource_word\treplacement\thow\teos\n"
            "1\t2\tdog\tHund\tdictionary\t0\n1\t4\tWuffi\tWuffi\tcopy\t1\n"
        ),
    }
    assert "replaced 2 unknown words: 1 from the dictionary, 1 copied; 1 attended" in capsys.readouterr().out
    assert sorted(run(tmp_path, enabled=False)) == ["plain.tok.txt", "plain.txt"]

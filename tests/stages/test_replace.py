"""Stage replace: hypotheses -> plain text, and text with unknown words replaced."""

from pathlib import Path

import pytest

from convs2s.config.replace import ReplaceParams
from convs2s.decode.translations import Hypothesis, write_hypotheses
from convs2s.decode.unknown_replacement import Unknown
from convs2s.text.alignment.dictionary import Entry, write_dictionary
from pipelines.stages import replace
from tests.decode.parrot import TOKENIZE


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """A translation with two unknown words, an empty one, and a dictionary."""
    words = ["Ein", "<unk>", "namens", "<unk>", "."]
    unknowns = [Unknown(1, 1, False), Unknown(3, 3, True)]
    best = Hypothesis([*words, "</s>"], words, -1.0, -0.2, [0, 1, 2, 3, 4, 4], unknowns)
    second = Hypothesis(["</s>"], [], -9.0, -9.0, [0], [])
    source = ["A", "dog", "named", "Wuffi", "."]
    empty = Hypothesis([], [], 0.0, 0.0, [], [])
    (tmp_path / "translations").mkdir()
    sentences = [(source, [best, second]), (list[str](), [empty])]
    write_hypotheses(tmp_path / "translations" / "hypotheses.jsonl", sentences)
    write_dictionary(tmp_path / "alignment" / "dictionary.tsv", [Entry("dog", "Hund", 3, 4)])
    return tmp_path


def run(folders: Path, enabled: bool) -> dict[str, str]:
    """Run the stage; return its files' text by name."""
    params, out = ReplaceParams(enabled=enabled), folders / "out"
    replace.run(params, TOKENIZE, ("en", "de"), folders / "translations", folders / "alignment", out)
    return {path.name: path.read_text(encoding="utf-8") for path in out.iterdir()}


def test_unknown_words_are_replaced_in_a_second_text(
    folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The dictionary comes first, then copying; only best hypotheses are written, one line each."""
    assert run(folders, enabled=True) == {
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


def test_switched_off_there_is_plain_text_only(folders: Path) -> None:
    """The replaced text of an earlier run is removed."""
    run(folders, enabled=True)
    assert sorted(run(folders, enabled=False)) == ["plain.tok.txt", "plain.txt"]


def test_damaged_hypotheses_leave_no_result(folders: Path) -> None:
    """The message has the file and line."""
    (folders / "translations" / "hypotheses.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"hypotheses.jsonl, line 1: expected a line written by the stage translate"
    ):
        run(folders, enabled=True)
    assert not (folders / "out").exists()

"""The test set that a score belongs to."""

import hashlib
import json
from pathlib import Path

from convs2s.base.files import write_lines
from convs2s.score.identity import identify
from convs2s.text.sources.pair_files import file_part
from convs2s.text.sources.split import write_split


def test_name_lines_and_hash_are_those_of_the_download(tmp_path: Path) -> None:
    """With a single source, the hash equals the one in its provenance."""
    text = "One.\tEins.\nTwo.\tZwei.\nThree.\tDrei.\n"
    (tmp_path / "test.tsv").write_text(text, encoding="utf-8")
    write_split([file_part([tmp_path / "test.tsv"], (0, 1), ("en", "de"))], tmp_path / "test")
    found = identify(tmp_path / "test")
    assert found.sha256 == hashlib.sha256(text.encode()).hexdigest()
    provenance = json.loads((tmp_path / "test/provenance.json").read_text(encoding="utf-8"))
    assert found.sha256 == provenance["sources"][0]["pairs_sha256"]
    assert str(found) == f"test.tsv: 3 lines, sha256 {found.sha256}"


def test_further_references_are_part_of_the_test_set(tmp_path: Path) -> None:
    """ROUGE depends on them, so other references make it another test set."""
    write_lines(tmp_path / "a.tsv", ["one\teins"])
    found = []
    for name in ("ref1", "ref2", None):
        if name is not None:
            write_lines(tmp_path / name, [f"text of {name}"])
        references = [tmp_path / name] if name is not None else []
        write_split(
            [file_part([tmp_path / "a.tsv"], (0, 1), ("en", "de"))], tmp_path / f"with-{name}", references
        )
        found.append(identify(tmp_path / f"with-{name}"))
    assert [one.name for one in found] == ["a.tsv and ref1", "a.tsv and ref2", "a.tsv"]
    assert len({one.sha256 for one in found}) == 3

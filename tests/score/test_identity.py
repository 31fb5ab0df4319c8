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
    for name in ("pair", "ref1", "ref2"):
        write_lines(tmp_path / name, [f"text of {name}"])
    found = []
    for references in (["ref1"], ["ref2"], []):
        part = file_part([tmp_path / "pair", tmp_path / "pair"], None, ("en", "de"))
        write_split([part], tmp_path / "split", [tmp_path / name for name in references])
        found.append(identify(tmp_path / "split"))
    assert len({identity.sha256 for identity in found}) == 3
    assert found[0].name == "pair and pair and ref1"

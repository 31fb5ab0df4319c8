"""The whole pipeline at toy size for a language without spaces, prepared as docs/own-data.md says."""

import itertools
import json
import unicodedata
from pathlib import Path

import convs2s
from convs2s.base.files import read_folder
from convs2s.config.params import Params
from convs2s.text.words.tokenization import SPACES_OF_MARKS
from tests.pipeline import run_all
from tests.presets import params_of
from tests.train.tiny import tiny_params

SUBJECTS = {
    "the cat": "猫", "the old teacher": "年をとった先生", "my friend Anna": "友達のアンナ", "a bird": "鳥",
    "the city of Kyoto": "京都の街",
}  # fmt: skip
PLACES = {"in the house": "家の中で", "on the mountain": "山の上で", "by the sea": "海辺で"}
VERBS = {"sleeps": "寝ています", "is waiting for the rain": "雨を待っています", "laughs": "笑っています"}
PAIRS = [
    (f"{one} {verb} {place}.", f"{subject}は{where}{action}。")
    for (one, subject), (place, where), (verb, action) in itertools.product(
        SUBJECTS.items(), PLACES.items(), VERBS.items()
    )
]
TEST = [("the sloth 🦥 sleeps\u200b in the house.", "ナマケモノ🦥は「家」で寝ています。"), *PAIRS[::9]]


def own_params(folder: Path) -> Params:
    """Return the preset own-data with a tiny model, and the files of a folder."""
    own = params_of("own-data")
    tiny = tiny_params(folder, max_epochs=1, max_tokens=500, batch_sentences=32)
    sizes = {"source_size": 340, "target_size": 340}
    return tiny.model_copy(
        update={
            "languages": ("en", "ja"),
            "download": own.download.model_copy(update={"folder": str(folder)}),
            "tokenize": own.tokenize,
            "filter": own.filter.model_copy(update={"max_overlap": None}),  # there are only a few pairs
            "model": tiny.model.model_copy(update={"max_positions": 256}),
            "vocabulary": own.vocabulary.model_copy(update=sizes),
        }
    )


def test_japanese_goes_through_the_pipeline(tmp_path: Path) -> None:
    """No pair is filtered out, no word is unknown, no space marker is left, and BLEU counts characters."""
    for split, pairs in (("train", PAIRS), ("valid", PAIRS[::7]), ("test", TEST)):
        for side, texts in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
            text = unicodedata.normalize("NFD", "".join(f"{line}\n" for line in texts))
            (tmp_path / f"{split}.{side}.txt").write_text(text, encoding="utf-8")
    data = tmp_path / "data"
    run_all(own_params(tmp_path), data)
    assert len(list(read_folder(data / "filtered" / "train"))) == len(PAIRS)
    signatures = json.loads((data / "evaluation" / "signatures.json").read_text())
    assert "tok:char" in signatures["bleu"]
    lines = (data / "replaced" / "1" / "plain.txt").read_text(encoding="utf-8").split("\n")[:-1]
    assert len(lines) == len(TEST)
    assert not set("".join(lines)) & set(map(chr, SPACES_OF_MARKS))
    assert "<unk>" not in "".join(lines)
    model = convs2s.load(data / "models" / "1")
    assert model.translate([source for source, _ in TEST]) == lines

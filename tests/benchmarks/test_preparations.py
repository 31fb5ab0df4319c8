"""The benchmark of ways to prepare raw text."""

from pathlib import Path

from benchmarks.preparations import COMPARED, Row, changed, fetch, markdown
from benchmarks.round_trip import PREPARATIONS
from convs2s.text.corpus.files import read_folder
from tests.presets import params_of


def test_preparations_differ_in_nothing_but_the_text() -> None:
    """Only tokenization and segmentation differ; length filters are off: lengths depend on these two."""
    params = params_of("tatoeba-en-de")
    found = {name: changed(params, PREPARATIONS[name], [7, 8]) for name in COMPARED}
    assert [(one.tokenize.tokenizer, one.vocabulary.kind) for one in found.values()] == [
        ("moses", "bpe"),
        ("spaces", "sentencepiece"),
    ]
    for one in found.values():
        assert one.train == params.train.model_copy(update={"seeds": [7, 8]})
        assert (one.model, one.translate, one.download) == (params.model, params.translate, params.download)
        assert (one.filter.max_words, one.filter.max_ratio) == (None, None)
        assert one.vocabulary.source_size == params.vocabulary.source_size


def test_pairs_are_drawn_at_random_and_stay_pairs(tmp_path: Path) -> None:
    """They come from the whole corpus: its first pairs may be its shortest."""
    params = params_of("tatoeba-en-de")
    few = [params.download.train[0].model_copy(update={"pairs": 300})]
    download = params.download.model_copy(update={"train": few, "test": few})
    fetch(params.model_copy(update={"download": download}), 50, 5, tmp_path)
    every, some = (list(read_folder(tmp_path / place / "train")) for place in ("all", "raw"))
    places = [every.index(pair) for pair in some]
    assert len(places) == 50
    assert places != sorted(places)
    assert max(places) > len(every) / 2
    assert len(list(read_folder(tmp_path / "raw/test"))) == 5


def test_a_row_has_mean_and_deviation() -> None:
    """The deviation of 10, 11 and 12 is 1; a single seed has none."""
    assert (
        markdown(Row("moses", [10, 11, 12], [8, 8, 9]))
        == "| moses | 11.00 ± 1.00 | 10.00, 11.00, 12.00 | 8, 8, 9 |"
    )
    assert markdown(Row("moses", [10], [8])) == "| moses | 10.00 | 10.00 | 8 |"

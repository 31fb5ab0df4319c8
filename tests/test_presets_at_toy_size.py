"""Every preset runs at toy size, with local servers, made-up local files and a tiny model."""

import gzip
import json
import lzma
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from convs2s.base.files import read_folder
from convs2s.config.download import Split
from convs2s.config.params import Params
from convs2s.config.section import NOTHING
from pipelines.preset import find_presets
from pipelines.stages import augment, download, encode, filter, tokenize, truecase, vocabulary
from tests.corpus import pairs
from tests.preset_servers import PAIRS, make_all, redirect
from tests.presets import params_of
from tests.test_end_to_end import SEEDS, run_all
from tests.web import Site, serve

NAMES = list(find_presets())
TINY = {"embedding_size": 12, "output_embedding_size": 12, "max_positions": 512}
ENTRIES = {"bpe": 120, "word": 100, "sentencepiece": 340}
SELECTION = {"common": 10, "candidates": 5}
PACK: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".xz": lzma.compress}


@pytest.fixture(scope="module")
def played() -> Iterator[Site]:
    with serve() as site:
        site.files |= make_all()
        yield site


def make_local(source: dict[str, Any], folder: Path) -> None:
    """Write the files of a local source, compressed as their names say."""
    first = source["tsv"] or source["source"]
    few = pairs(PAIRS // 2, 8 * PAIRS) if "test" in first or "duc" in first else pairs(PAIRS, 7 * PAIRS)
    few = pairs(PAIRS, 9 * PAIRS) if "val" in first else few
    texts = {source["source"]: [a for a, _ in few], source["target"]: [b for _, b in few]}
    texts = {source["tsv"]: [f"{a}\t{b}" for a, b in few]} if source["tsv"] else texts
    for name, lines in texts.items():
        data = "".join(line + "\n" for line in lines).encode()
        (folder / name).write_bytes(PACK.get(Path(name).suffix, bytes)(data))


def toy(preset: str, played: Site, folder: Path) -> Params:
    """Return a preset with our data, small vocabularies, and a model of two small layers per side.

    Text processing, and how the model and training work, stay as in the preset.
    """
    content = params_of(preset).model_dump(mode="json")
    local = content["download"]["folder"] = str(folder / "own")
    content["download"]["train"]["pairs"] = None
    Path(local).mkdir()
    for split in get_args(Split):
        sources = content["download"][split]["sources"]
        for i, source in enumerate(sources):
            if source["kind"] == "url":
                sources[i] = redirect(source, played)
            else:
                make_local(source, Path(local))
    test = content["download"]["test"]
    for reference in test["references"] or ():  # copies of the test pairs' targets
        shutil.copyfile(Path(local) / test["sources"][0]["target"], Path(local) / reference)
    if content["filter"]["valid_every"]:
        content["filter"]["valid_every"] = 10
    size = ENTRIES[content["vocabulary"]["kind"]]
    content["vocabulary"] |= {"source_size": size, "target_size": size}
    for side in ("encoder", "decoder"):
        kernels = content["model"][f"{side}_kernels"]
        # The outermost layers, which include one of kernel width 1 if the preset has any.
        content["model"] |= {f"{side}_widths": [12, 16], f"{side}_kernels": [kernels[0], kernels[-1]]}
    content["model"] |= TINY | {"attention": [True, True]}
    content["seeds"] = SEEDS
    content["train"] |= {"max_epochs": 1, "workers": 1, "precision": "float32"}
    content["train"] |= {"batch_sentences": 16, "max_tokens": 1000}
    content["train"] |= {"start_from": NOTHING, "average": 1}
    content["augment"] |= {"models": NOTHING, "text": NOTHING, "keep": True}
    content["translate"] |= {"max_length_extra": 15, "max_length_ratio": 0.0}
    for section in ("train", "translate"):
        if content[section]["selection"]:  # fewer than the vocabulary has: selecting all would test nothing
            content[section]["selection"] = SELECTION
    content["evaluate"]["heat_maps"] = 1
    return Params.model_validate(content)


def prepare(params: Params, data: Path) -> None:
    """Run the stages before training."""
    languages = params.languages
    for split in get_args(Split):
        download.run(params.download, languages, split, data / "downloads", data / "raw" / split)
    truecase.run(params.tokenize, languages, NOTHING, data / "raw/train", data / "truecasers")
    augment.run(NOTHING, NOTHING, params.run, data / "raw/train", data / "raw/augmented")
    for split in ("train", "augmented", "valid", "development"):
        folders = data / "truecasers", data / "raw" / split, data / "tokenized" / split
        tokenize.run(params.tokenize, languages, *folders)
    filter.run(
        params.filter,
        params.augment,
        languages,
        data / "raw",
        data / "tokenized/train",
        data / "tokenized/augmented",
        data / "tokenized/valid",
        data / "filtered",
    )
    vocabulary.run(params.vocabulary, NOTHING, data / "filtered/train", data / "vocabulary")
    for split in ("train", "valid"):
        encode.run(data / "vocabulary", data / "filtered" / split, data / "encoded" / split)


def pairs_of(folder: Path) -> list[tuple[str, str]]:
    return list(read_folder(folder))


# How many corpora make up train and test.
SOURCES = {
    "wmt16-en-ro-word": (3, 1), "wmt16-en-ro-bpe": (3, 1),
    "ablation-en-de": (1, 1), "wmt14-en-de-paper": (1, 1), "wmt14-en-de-fairseq": (3, 1),
    "wmt14-en-fr-paper": (5, 1), "wmt14-en-fr-small": (5, 1), "wmt14-en-fr-fairseq": (5, 1),
    "iwslt14-de-en": (1, 5),
}  # fmt: skip

# The ROUGE of the presets of summarization.
SUMMARIES = {
    "gigaword": "nrefs:1|measure:f1|bytes:all",
    "duc2004": "nrefs:4|measure:recall|bytes:75",
    "reuters-headlines": "nrefs:1|measure:f1|bytes:all",
}


def check_romanian(data: Path) -> None:
    """The training text is processed as by Sennrich et al. (T32); the raw test set is left alone."""
    assert " şi într-o ţară" in (data / "raw/test/target.txt").read_text(encoding="utf-8")
    tokenized = pairs_of(data / "tokenized/train")
    assert all(target.endswith("și într @-@ o țară .") for _, target in tokenized)
    before = sum(source.startswith("The ") for source, _ in pairs_of(data / "raw/train"))
    assert sum(source.startswith("the ") for source, _ in tokenized) == before > 5


def check_stanfords_words(data: Path) -> None:
    """The text already has ##AT##-##AT## and entities, and must not be tokenized again (T30)."""
    raw = (data / "raw/train/source.txt").read_bytes()
    assert b"well ##AT##-##AT## known man &apos;s &amp; ." in raw
    assert (data / "tokenized/train/source.txt").read_bytes() == raw


def check_talks(data: Path) -> None:
    """Text is lowercased; of a header, only title and description are text to learn from."""
    text = (data / "tokenized/train/source.txt").read_text(encoding="utf-8")
    assert text == text.lower()
    assert "<" not in text
    assert "talkid" not in text


def check_segments(data: Path) -> None:
    """A tag or "&amp;" left in the raw test set would be translated."""
    for source, target in pairs_of(data / "raw/test"):
        assert source.endswith(" AT&T < R&D.")
        assert "<" not in target


CHECKS: dict[str, Callable[[Path], None]] = {
    "wmt16-en-ro-bpe": check_romanian,
    "wmt14-en-de-paper": check_stanfords_words,
    "iwslt14-de-en": check_talks,
    "wmt14-en-de-fairseq": check_segments,
}


@pytest.mark.parametrize("name", NAMES)
def test_the_presets_data_are_prepared(name: str, played: Site, tmp_path: Path) -> None:
    """From the publishers' files to token ids, no pair is lost or split up."""
    prepare(toy(name, played, tmp_path), tmp_path)
    trains, tests = SOURCES.get(name, (1, 1))
    raw = {split: pairs_of(tmp_path / "raw" / split) for split in get_args(Split)}
    assert len(raw["train"]) == trains * PAIRS
    assert len(raw["test"]) == tests * PAIRS // 2
    assert len(pairs_of(tmp_path / "tokenized/train")) == len(raw["train"])
    report = json.loads((tmp_path / "filtered/report.json").read_text(encoding="utf-8"))
    kept = report["train"]["pairs"] + (report["valid"]["pairs"] if not raw["valid"] else 0)
    assert kept == report["pairs_kept"] > 0.7 * len(raw["train"])
    if name in CHECKS:
        CHECKS[name](tmp_path)


# By default, one preset for each feature that test_end_to_end lacks: vocabulary selection with a tuned alpha,
# ROUGE with several references and a minimum length. The rest differ in data, size and schedule.
BY_DEFAULT = {"ablation-en-de", "duc2004"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in BY_DEFAULT else pytest.mark.slow) for name in NAMES]
)
def test_the_preset_runs_from_download_to_evaluation(name: str, played: Site, tmp_path: Path) -> None:
    """Every preset must get through all stages, with two seeds; the scores come with their test set."""
    params = toy(name, played, tmp_path)
    data = tmp_path / "data"
    run_all(params, data)
    metrics = json.loads((data / "evaluation/metrics.json").read_text(encoding="utf-8"))
    assert set(metrics["seeds"]) == {str(seed) for seed in SEEDS}
    assert ("ensemble" in metrics) == bool(params.evaluate.ensembles)
    assert ("without_replacement" in metrics) == params.replace.enabled
    training = json.loads((data / "trained/1/metrics.json").read_text(encoding="utf-8"))
    assert ("selected_entries" in training) == (params.train.selection is not None)
    assert training.get("selected_entries", 0) < ENTRIES["word"]
    signatures = json.loads((data / "evaluation/signatures.json").read_text(encoding="utf-8"))
    assert signatures.get("rouge1", "").startswith(SUMMARIES.get(name, ""))
    assert ("rouge1" in signatures) == ("rougeL" in metrics["mean"]) == (name in SUMMARIES)
    test_set = json.loads((data / "evaluation/test_set.json").read_text(encoding="utf-8"))
    assert test_set["lines"] == len(pairs_of(data / "raw/test"))
    assert test_set["sha256"] in (data / "models/1/README.md").read_text(encoding="utf-8")
    shutil.rmtree(data)

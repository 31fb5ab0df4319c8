"""params.yaml is checked against its schema, and each fault is named by its key."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.load import load_params, parse_params
from tests.presets import MISSING, change_preset

PRESET = "tatoeba-en-de"
FILES = {"kind": "files", "source": "a", "target": "b"}
SELECTION = {"common": 500, "candidates": 100}
GRAPHS = {"train.graphs": True, "train.batch_by": "sentences"}


def fetch(**keys: Any) -> list[dict[str, Any]]:
    """Return a list of sources with one file from the network."""
    file = {"urls": ["https://host/a.tgz"], "checksum": None} | keys
    return [{**FILES, "kind": "url", "fetch": [{k: v for k, v in file.items() if v is not MISSING}]}]


def text_with(changes: dict[str, Any]) -> str:
    """Return the default preset with some changes; JSON is YAML that parses faster."""
    return json.dumps(change_preset(PRESET, changes)).replace("Infinity", ".inf")


TRAIN = "download.train.sources"
FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"train.droput": 0.1}, r"train\.droput: unknown key, found 0\.1; did you mean dropout\?"),
    ({"trian": {}}, r"trian: unknown key, found \{\}; did you mean train\?"),
    ({f"{TRAIN}.0.tvs": 1}, r"train\.sources\.0\.files\.tvs: unknown key, found 1; did you mean tsv\?"),
    ({TRAIN: fetch(sha=1)}, r"fetch\.0\.sha: unknown key, found 1; known here: checksum, urls"),
    ({"translate.selection": {**SELECTION, "comon": 1}}, r"\.selection\.comon: .* did you mean common\?"),
    ({"train.dropout": MISSING}, r"train\.dropout: missing"),
    ({"translate.beam_size": "five"}, r"translate\.beam_size: expected an integer, found 'five'"),
    ({"train.dropout": 1.0}, r"train\.dropout: expected less than 1, found 1\.0"),
    ({"vocabulary.kind": "x"}, r"vocabulary\.kind: expected 'bpe', 'sentencepiece' or 'word', found 'x'"),
    ({f"{TRAIN}.0.kind": "magic"}, r"train\.sources\.0: .*'magic' .* expected tags: 'files'"),
    ({"languages": ["English", "de"]}, r"languages\.0: expected a code of two or three .*, found 'English'"),
    ({TRAIN: []}, r"train\.sources: expected a list with at least 1 item, found \[\]"),
    ({TRAIN: [FILES | {"tsv": "c"}]}, r"sources\.0\.files: expected `source` and .* source, target, tsv"),
    ({TRAIN: [FILES | {"target": FILES["source"]}]}, "expected a file or column of its own .*, found a for"),
    ({"download.valid.sources": [FILES], "filter.valid_every": 9}, r"expected one, .*found 9 and 1 source"),
    ({"model.attention": [True] * 9}, r"one per block of decoder_widths, found 9\. Change one of them"),
    ({"model.attention": False}, r"model: expected attention in some block, .* found none"),
    ({"model.encoder_kernels": [3] * 9}, r"found 9\. .*: a single value of encoder_kernels, such as 3,"),
    ({"model.encoder_kernels": 4}, r"model: expected odd encoder_kernels, .* found the even width 4"),
    ({"model.embedding_size": 10**30}, r"model\.embedding_size: expected less than or equal to"),
    *(
        ({"model.encoder_widths": text}, rf"encoder_widths: expected a list .*, found '{text}'")
        for text in ("4 x", "0 x 256", "999 x 1, 999 x 1")
    ),
    ({"seeds": 1}, r"seeds: expected a list, found 1"),
    ({"evaluate.ensembles": "all"}, r"evaluate\.ensembles: expected a list, found 'all'"),
    ({"seeds": [True]}, r"seeds\.0: expected an integer, found true"),
    ({"seeds": [1, 2, 1]}, r"seeds: expected each seed once, found 1 more than once"),
    ({"seeds": []}, r"seeds: expected a list with at least 1 item, found \[\]"),
    ({"evaluate.ensembles": ["all"]}, r"evaluate\.ensembles: expected \[\] with a single seed"),
    (
        {"evaluate.ensembles": ["all", "all"], "seeds": [1, 2]},
        r"evaluate\.ensembles: expected at most 1 item, found \['all', 'all'\]",
    ),
    ({"languages": "en-de"}, r"languages: expected a list, found 'en-de'"),
    ({"languages": ["en", "de", "fr"]}, r"languages: expected at most 2 items, found \['en', 'de', 'fr'\]"),
    ({"package.name": ""}, r"package\.name: expected a text, found ''"),
    ({"train.compile": "yes"}, r"train\.compile: expected true or false, found 'yes'"),
    ({"train.graphs": True}, r"train: expected batch_by: 'sentences' with graphs: true, found 'tokens'"),
    (GRAPHS | {"train.compile": True}, r"train: expected compile: false with .*, found true"),
    (GRAPHS | {"train.workers": 2}, r"train: expected workers: 1 with .*, found 2"),
    (GRAPHS | {"train.nodes": 2}, r"train: expected nodes: 1 with .*, found 2"),
    (GRAPHS | {"train.selection": SELECTION}, r"train: expected selection: null with .*, found "),
    ({"train.dropout": None}, r"train\.dropout: expected a number, found null"),
    ({"train.nodes": 2}, r"run\.launcher: expected one with 2 nodes \(train\.nodes\), found null"),
    ({"train.learning_rate": math.inf}, r"train\.learning_rate: expected a finite number, found inf"),
    ({"train.selection": SELECTION}, r"translate\.selection: expected one, as for train\.selection"),
    ({"translate.selection": SELECTION}, r"candidates\.per_source: expected at least 100, .*found null"),
    ({"candidates.per_source": 9, "align.backend": "none"}, r"align\.backend: expected one such as builtin"),
    ({"augment.text": "a"}, r"augment: expected models, or text data/none .*, found text a and keep true"),
    ({"augment.keep": False}, r"augment: expected models, or .* found text data/none and keep false"),
    (
        {"augment.models": "m", "download.valid.sources": [], "filter.valid_every": 9},
        r"filter\.valid_every: expected null, .* with augment\.models, .* found 9",
    ),
    ({"augment.models": "m", "tokenize.corpus": "tokenized"}, r"tokenize\.corpus: expected raw with"),
    ({"vocabulary.target_size": 17}, r"vocabulary: expected the same .*, found \d+ and 17"),
    ({"vocabulary.kind": "word"}, r"vocabulary: expected joint: false, .* found true"),
    ({"translate.alpha": "tunned"}, r"translate\.alpha: expected a number or 'tuned', found 'tunned'"),
    ({"translate.alpha": True}, r"translate\.alpha: expected a number or 'tuned', found true"),
    ({"tune.alphas": [99]}, r"tune\.alphas\.0: expected less than or equal to 10, found 99"),
    ({"translate.n_best": 9}, r"translate: expected n_best of at most beam_size, \d, found 9"),
    (
        {"train.tied_embeddings": True, "model.embedding_size": 7},
        "expected model.embedding_size = .* found 7",
    ),
    *(
        ({key: 10**12}, rf"{key}: expected less than or equal to \d+, found 1000000000000")
        for key in (
            "translate.beam_size",
            "translate.n_best",
            "translate.batch_sentences",
            "translate.min_length",
            "translate.max_length_ratio",
            "translate.max_length_extra",
            "train.workers",
            "train.nodes",
            "vocabulary.source_size",
            "vocabulary.target_size",
            "align.iterations",
        )
    ),
    (
        {"translate.max_length_ratio": 1e308},
        r"max_length_ratio: expected less than or equal to 1000, found 1e",
    ),
    ({"filter.valid_every": 10**30}, r"filter\.valid_every: expected less than or equal to"),
    ({"train.average": 9}, r"train: expected average of at most max_epochs, \d, found 9"),
    ({"tokenize.remove_diacritics": True}, r"remove_diacritics: expected false unless .* found true .*'en'"),
    ({"tokenize.lowercase": True, "tokenize.truecase": True}, r"tokenize: expected at most one of lowerc"),
]


@pytest.mark.parametrize(("changes", "message"), FAULTS, ids=[str(changes)[:60] for changes, _ in FAULTS])
def test_a_fault_names_the_key_what_was_expected_and_what_was_found(
    changes: dict[str, Any], message: str
) -> None:
    """The message alone must be enough to fix params.yaml, before any stage starts."""
    with pytest.raises(ValueError, match=r"^params\.yaml is invalid:\n  (.*\n  )*.*" + message):
        parse_params(text_with(changes), "params.yaml")


def test_every_fault_is_listed_at_once() -> None:
    """A user should not have to fix a file five times."""
    with pytest.raises(ValueError, match="is invalid") as error:
        parse_params(
            text_with({"train.dropout": "much", "train.clipnorm": 1, "tune": MISSING}), "params.yaml"
        )
    assert len(str(error.value).split("\n")) == 4


def test_a_password_in_a_url_is_refused_and_not_shown() -> None:
    """params.yaml is committed to git, and error messages are shared."""
    with pytest.raises(ValueError, match=r"fetch\.0\.urls.*: expected a") as error:
        parse_params(text_with({TRAIN: fetch(urls=["https://me:secret@host/a"])}), "params.yaml")
    assert "secret" not in str(error.value)


def test_layers_have_a_short_form() -> None:
    """A single value applies to every block, so users can change the depth without editing other keys."""
    short = {
        "encoder_widths": "2 x 64,1 x 128", "encoder_kernels": 3,
        "decoder_widths": "4 x 64", "decoder_kernels": "3 x 5, 1x1", "attention": True,
    }  # fmt: skip
    model = parse_params(
        text_with({f"model.{key}": value for key, value in short.items()}), "params.yaml"
    ).model
    assert model.encoder_widths == [64, 64, 128] and model.encoder_kernels == [3, 3, 3]
    assert model.decoder_widths == [64] * 4 and model.decoder_kernels == [5, 5, 5, 1]
    assert model.attention == [True] * 4


def test_yaml_is_read_as_dvc_reads_it() -> None:
    """1e-4 is a number to YAML 1.2, a string to PyYAML; aliases are ordinary YAML."""
    text = text_with({"train.momentum": "MOMENTUM", "train.clip_norm": "CLIP"})
    text = text.replace('"MOMENTUM"', "&one 1e-4").replace('"CLIP"', "*one")
    train = parse_params(text, "params.yaml").train
    assert train.momentum == train.clip_norm == 1e-4


def aliases(pattern: str, levels: int = 9) -> bytes:
    """Return YAML of a few lines that stands for 9^levels values, or mappings to merge."""
    lines = ["a0: &a0 {x: y}"]
    for level in range(levels):
        names = ",".join([f"*a{level}"] * 9)
        lines.append(f"a{level + 1}: &a{level + 1} {pattern.format(names)}")
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"download: K\xf6ln\n", r"params\.yaml, line 1: byte 11 is 0xf6, which is not UTF-8"),
        (b"a: [1, 2\nb: }", r"params\.yaml is not valid YAML"),
        (b"a: 2001-13-13\n", r"is not valid YAML: month must be in 1\.\.12"),
        (b"", r"params\.yaml is invalid:\n  expected .*, found null"),
        (b"seeds: [1]\nseeds: [2]\n", r"(?s)params\.yaml is not valid YAML: .*duplicate key.*line 2"),
        (b"train:\n  dropout: 0\n  dropout: 1\n", r"(?s)is not valid YAML: .*duplicate key.*line 3"),
        (b"a" * 300_000, r"params\.yaml has 300,000 bytes; expected at most 262,144"),
        (b"a: " + b"[" * 5000, r"params\.yaml: expected values, found lists or mappings nested too deeply"),
        (aliases("[{}]"), r"params\.yaml is not valid YAML: expected at most 100,000 values, with all al"),
        (aliases("{{<<: [{}]}}", levels=6), "expected at most 100,000 values, with all aliases"),
        (b"a: &a [*a]\n", "expected at most 100,000 values, with all aliases"),
        (b"a: *b\n", r"found undefined alias 'b'\s+in .*line 1, column 4"),
    ],
)
def test_a_damaged_file_is_reported(tmp_path: Path, content: bytes, message: str) -> None:
    """The message must say what to do next. A stranger's file is refused before it takes time or memory."""
    with pytest.raises(FileNotFoundError, match=r"make preset NAME=tatoeba-en-de"):
        load_params(tmp_path / "params.yaml")
    (tmp_path / "params.yaml").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_params(tmp_path / "params.yaml")

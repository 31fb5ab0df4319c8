"""Model folders and checkpoints with odd values: they load, or an error names the file.

Digests and checksums are those of the odd values, so that these reach the readers.
"""

import argparse
import copy
import dataclasses
import json
import math
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from convs2s.config.format import FORMAT
from convs2s.fairseq.architecture import read_architecture
from convs2s.fairseq.files import read_fairseq_checkpoint
from convs2s.fairseq.importer import convert_model, find_language
from convs2s.ids.candidates import Candidates, write_candidates
from convs2s.model.description import digest_of_content, seal
from convs2s.model.storage import write_tensors
from convs2s.package.translator import load
from convs2s.train.running import checkpoint as training_checkpoint
from convs2s.train.training import State
from tests.golden import FAIRSEQ_SIZES, PLAIN, tensors
from tests.package.small_package import edit_settings, write_small_package
from tests.properties.conftest import EXAMPLES
from tests.properties.test_readers import damage

FILES = (
    "model.json", "weights.safetensors", "tokenizer.json", "translate.json", "segmentation.json",
    "facts.json", "dictionary.tsv", "source.tsv", "target.tsv", "source.model", "target.model",
    "candidates.npz", "truecaser.tsv",
)  # fmt: skip
AWKWARD: list[Any] = [
    None, True, False, -1, 0, 1, 2, 1.5, 10**30, 1e308, math.nan, math.inf, "", "text", "12", "99.0.0",
    "false",
    "\x1b[2J", "../../secret", "\ud800", [], {}, [1], ["text"], {"a": 1}, [[[[[[[[[]]]]]]]]],
]  # fmt: skip
TENSORS = [
    torch.tensor(1.0), torch.ones(2), torch.ones(3, 1), torch.ones(60_000, 1), torch.ones(1, 60_000),
    torch.ones(2, 2, 2), torch.ones(1).expand(10**9), torch.full((376,), math.nan), torch.ones(376) * 1j,
    torch.ones(376).to_sparse(), torch.ones(376, device="meta"), torch.zeros(0), torch.ones(376).bool(),
    torch.ones(376, dtype=torch.float16), torch.quantize_per_tensor(torch.ones(376), 1.0, 0, torch.qint8),
]  # fmt: skip
"""Values that tensors of fairseq's plain model, or of none, may have."""


def list_places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container in a tree of dictionaries and lists with each of its keys."""
    keys = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield tree, key
        yield from list_places(tree[key])


def change(tree: Any, dice: random.Random, awkward: list[Any]) -> Any:
    """Return a copy of a tree with another value at a place, or one more, or one less."""
    tree = copy.deepcopy(tree)
    container, key = dice.choice(list(list_places(tree)))
    kind = dice.randrange(6)
    if kind == 0:
        del container[key]
    elif kind == 1 and isinstance(container, dict):
        container[dice.choice(("", "more", f"module.{key}", f"{key}_g", "../x"))] = container[key]
    elif kind == 2 and isinstance(container, list):
        container.extend([container[key]] * dice.choice((1, 2000)))
    else:
        container[key] = dice.choice(awkward)
    return tree


def change_file(content: bytes, name: str, dice: random.Random) -> bytes:
    """Return a file of a model folder with something else in it."""
    if name.endswith(".json") and dice.random() < 0.8:
        return json.dumps(change(json.loads(content), dice, AWKWARD)).encode()
    if name == "weights.safetensors" and dice.random() < 0.5:
        size = int.from_bytes(content[:8], "little")
        header = json.dumps(change(json.loads(content[8 : 8 + size]), dice, [*AWKWARD, "F16", "F8_E5M2"]))
        return len(header).to_bytes(8, "little") + header.encode() + content[8 + size :]
    return damage(content, dice)


def seal_description(path: Path) -> None:
    """Write the digest that fits into a model.json, whatever it has become."""
    try:
        content = json.loads(path.read_bytes())
    except ValueError:
        return
    if isinstance(content, dict):
        path.write_text(json.dumps(content | {"sha256": digest_of_content(content)}), encoding="utf-8")


def use(folder: Path) -> None:
    """Load a model folder, and use what it says of words; its weights are not asked for any numbers."""
    translator = load(folder, "cpu")
    words = translator.source.tokenize("Das ist ein Haus.")
    translator.words.source.encode(words)
    translator.target.detokenize(
        translator.words.target.decode(range(len(translator.words.target.vocabulary)))
    )
    if translator.facts is not None:
        translator.facts.summary()


@pytest.mark.parametrize("name", FILES)
def test_a_sealed_folder_loads_or_its_file_is_named(name: str, tmp_path: Path) -> None:
    """Whoever makes a model folder can also write its digests."""
    folder = write_small_package(tmp_path, replace=True)
    write_candidates(
        folder / "candidates.npz", Candidates(torch.arange(21).numpy(), torch.ones(20).int().numpy())
    )
    for file in ("truecaser.tsv", "truecaser.target.tsv"):
        (folder / file).write_text("Haus\t3\nist\t2\n", encoding="utf-8")
    edit_settings(folder, "translate.json", "translate", selection={"common": 3, "candidates": 2})
    edit_settings(folder, "tokenizer.json", "tokenize", truecase=True, lowercase=False)
    use(folder)
    whole = (folder / name).read_bytes()
    for seed in range(EXAMPLES):
        content = change_file(whole, name, random.Random(seed))
        (folder / name).write_bytes(content)
        if name == "model.json":
            seal_description(folder / name)
        else:
            seal(folder)
        try:
            with warnings.catch_warnings(action="ignore"):
                use(folder)
        except (ValueError, OSError) as error:
            stem = name.removesuffix(".tsv").removesuffix(".json")
            assert stem in str(error) or str(folder) in str(error), f"seed {seed} with {content!r}: {error}"
            assert "pickle" not in str(error)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_checkpoint_of_fairseq_is_imported_or_named(zipped: bool, tmp_path: Path) -> None:
    """Every value in it may be of any kind."""
    path = tmp_path / "model.pt"
    sizes = (FAIRSEQ_SIZES["source"], FAIRSEQ_SIZES["target"])
    whole: dict[str, Any] = {
        "model": dict(tensors("plain")),
        "cfg": {"model": PLAIN, "task": {"source_lang": "en"}},
    }
    for seed in range(EXAMPLES):
        dice = random.Random(seed)
        content = change(whole, dice, [*AWKWARD, *TENSORS]) if seed else whole
        if dice.random() < 0.5 and isinstance(content.get("cfg"), dict):
            values = content["cfg"].get("model")
            content = {**content, "cfg": None}
            content["args"] = argparse.Namespace(**values) if isinstance(values, dict) else values
        torch.save(content, path, _use_new_zipfile_serialization=zipped)
        try:
            with warnings.catch_warnings(action="ignore"):
                read = read_fairseq_checkpoint(path)
                convert_model(read, read_architecture(read), sizes)
                find_language(read, "source", None, Path("dict.en.txt"))
        except ValueError as error:
            assert seed, error
            assert path.name in str(error), f"seed {seed}: {error}"
            assert "weights_only" not in str(error)


def test_a_checkpoint_of_ours_is_read_or_named(tmp_path: Path) -> None:
    """Its checksum fits; what it says of the training may be anything."""
    path = tmp_path / "checkpoint.safetensors"
    weights = {"weights/a": torch.ones(2, 3)}
    whole = {"format": FORMAT, "state": dataclasses.asdict(State()), "fingerprint": {"seed": "1"}}
    for seed in range(EXAMPLES):
        content = change(whole, random.Random(seed), AWKWARD) if seed else whole
        metadata = {
            key: str(value) if key == "format" else json.dumps(value) for key, value in content.items()
        }
        complete = {"state": "", "fingerprint": ""} | metadata
        crc = training_checkpoint.checksum(complete, weights)
        write_tensors(path, weights, metadata | {"crc32": crc})
        try:
            training_checkpoint.read_checkpoint(path)
        except ValueError as error:
            assert seed, error
            assert path.name in str(error), f"seed {seed}: {error}"

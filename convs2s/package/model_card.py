"""The model card: README.md of a model folder."""

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from safetensors import safe_open

from convs2s.model.receptive_field import receptive_field
from convs2s.package.front_matter import front_matter
from convs2s.text.corpus.json_files import read_json
from convs2s.text.languages import name

NAMES = {"bleu": "BLEU, detokenized", "bleu_tokenized": "BLEU, tokenized", "chrf": "chrF2"}
NAMES |= {f"rouge{n}": f"ROUGE-{n}" for n in "12L"}
USE = [
    "## Use",
    "",
    "```bash",
    "convs2s translate --model THIS_FOLDER < source.txt > translation.txt",
    "```",
    "",
    "```python",
    "import convs2s",
    "",
    'translator = convs2s.load("THIS_FOLDER")',
    'print(translator.translate(["..."]))',
    "```",
    "",
    "For a model on the Hugging Face Hub, give `hf:OWNER/NAME` instead of a folder.",
    "",
]  # fmt: skip


@dataclass(frozen=True)
class Sizes:
    """How large a model is.

    Attributes:
        parameters: number of learned parameters, with weight norm folded in.
        layers: number of blocks in encoder and decoder.
        blocks: their widths and kernel widths, as text.
        embedding: channels of an embedding.
        seen: receptive field of encoder and decoder, in positions (§3.2).
        entries: number of source and target vocabulary entries, special ones included.
    """

    parameters: int
    layers: tuple[int, int]
    blocks: tuple[str, str]
    embedding: int
    seen: tuple[int, int]
    entries: tuple[int, int]


@dataclass(frozen=True)
class Facts:
    """The content of a model card.

    Attributes:
        name: title.
        languages: of source and target, as codes.
        data_license: of the training data.
        pairs: number of training pairs, after filtering.
        words: number of words in them, source and target.
        sizes: of the model.
        segmentation: bpe or word.
        seed: of this training run.
        training: hyperparameters, by key of params.yaml.
        scores: of this model on the test set, by name; may be empty.
        signatures: sacreBLEU signature of each score.
        test_set: the test set of the scores, with lines and hash; empty without scores.
    """

    name: str
    languages: tuple[str, str]
    data_license: str
    pairs: int
    words: tuple[int, int]
    sizes: Sizes
    segmentation: str
    seed: int
    training: Mapping[str, object]
    scores: Mapping[str, float]
    signatures: Mapping[str, str]
    test_set: str = ""


def read_sizes(model: Path) -> Sizes:
    """Return the sizes of a model on disk, without loading its weights.

    Raises:
        FileNotFoundError: if model.json or weights.safetensors is missing.
    """
    description = read_json(model / "model.json")
    with safe_open(model / "weights.safetensors", framework="numpy") as weights:
        shapes = [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118  # no dict
    architecture = description["architecture"]
    return Sizes(
        parameters=sum(math.prod(shape) for shape in shapes),
        layers=(len(architecture["encoder_widths"]), len(architecture["decoder_widths"])),
        blocks=(
            blocks(architecture["encoder_widths"], architecture["encoder_kernels"]),
            blocks(architecture["decoder_widths"], architecture["decoder_kernels"]),
        ),
        embedding=architecture["embedding_size"],
        seen=(
            receptive_field(architecture["encoder_kernels"]),
            receptive_field(architecture["decoder_kernels"]),
        ),
        entries=(description["source_size"], description["target_size"]),
    )


def blocks(widths: Sequence[int], kernels: Sequence[int]) -> str:
    """Return the layers from the bottom, such as "9 x 512, kernel 3; 4 x 1024, kernel 3"."""
    runs = itertools.groupby(zip(widths, kernels, strict=True))
    return "; ".join(f"{len(list(run))} x {width}, kernel {kernel}" for (width, kernel), run in runs)


def model_card(facts: Facts) -> str:
    """Return the card as Markdown, after its front matter; it depends only on the facts."""
    scores = {name: (title, facts.scores[name]) for name, title in NAMES.items() if name in facts.scores}
    head = front_matter(facts.name, facts.languages, facts.data_license, scores, facts.test_set)
    return f"{head}\n{body(facts)}"


def body(facts: Facts) -> str:
    """Return the human-readable part of the card."""
    source, target = map(described, facts.languages)
    entries, layers, seen = facts.sizes.entries, facts.sizes.layers, facts.sizes.seen
    return "\n".join([
        f"# {facts.name}",
        "",
        f"A convolutional sequence to sequence model (Gehring et al., 2017), from {source} to {target}.",
        "",
        "| | |",
        "|---|---|",
        f"| languages | {source} to {target} |",
        f"| training data | {cell(facts.name)}; license: {cell(facts.data_license)} |",
        f"| sentence pairs | {facts.pairs:,}, after filtering |",
        f"| words in them | {facts.words[0]:,} source, {facts.words[1]:,} target |",
        f"| layers | {layers[0]} encoder, {layers[1]} decoder; they see {seen[0]} and {seen[1]} tokens |",
        f"| encoder, from the bottom | {facts.sizes.blocks[0]} |",
        f"| decoder, from the bottom | {facts.sizes.blocks[1]} |",
        f"| embedding | {facts.sizes.embedding} channels |",
        f"| parameters | {facts.sizes.parameters:,}, with weight normalization folded in |",
        f"| vocabulary | {facts.segmentation}; {entries[0]:,} source and {entries[1]:,} target entries |",
        f"| seed | {facts.seed} |",
        "",
        *score_lines(facts.scores, facts.signatures, facts.test_set),
        *training_lines(facts.training),
        *USE,
        "One line in, one line out. It works best on text like its training data. It may omit, add or invent "
        "content, so have a human check anything that matters.",
        "",
    ])  # fmt: skip


def training_lines(values: Mapping[str, object]) -> list[str]:
    """Return the table of hyperparameters."""
    rows = [f"| `{key}` | {cell(json.dumps(value))} |" for key, value in values.items()]
    return ["## Training", "", "| key of params.yaml | value |", "|---|---|", *rows, ""]


def described(code: str) -> str:
    """Return a language with its code, such as "German (de)"; a code without a name is returned unchanged."""
    return code if name(code) == code else f"{name(code)} ({code})"


def cell(text: str) -> str:
    """Return text for a table cell, which an unescaped bar would end, even within code."""
    return text.replace("|", r"\|")


def score_lines(scores: Mapping[str, float], signatures: Mapping[str, str], test_set: str) -> Sequence[str]:
    """Return the test set, and the table of scores with their signatures; nothing if there are no scores."""
    named = [name for name in NAMES if name in scores]
    if not named:
        return []
    rows = [f"| {NAMES[name]} | {scores[name]:.2f} | `{cell(signatures.get(name, ''))}` |" for name in named]
    test_set_lines = [f"`{test_set}`", ""] if test_set else []
    table = ["| score | | sacreBLEU signature |", "|---|---|---|", *rows]
    return ["## Scores on the test set", "", *test_set_lines, *table, ""]

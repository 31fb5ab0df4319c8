"""The model card: README.md of a model folder, with the front matter that the Hugging Face Hub reads."""

import io
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from safetensors import safe_open

from convs2s.base.files import read_json
from convs2s.model.description import DESCRIPTION, WEIGHTS
from convs2s.model.glu_block import receptive_field
from convs2s.package.facts import Facts
from convs2s.text.languages import name

NAMES = {"bleu": "BLEU, detokenized", "bleu_tokenized": "BLEU, tokenized", "chrf": "chrF2"}
NAMES |= {f"rouge{n}": f"ROUGE-{n}" for n in "12L"}
# The Hub's identifiers of licenses; any other license is `other` there, with a name.
LICENSES = {
    "mit", "apache-2.0", "cc0-1.0", "cc-by-2.0", "cc-by-3.0", "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0",
    "cc-by-nc-2.0", "cc-by-nc-3.0", "cc-by-nc-4.0", "cc-by-nc-nd-3.0", "cc-by-nc-nd-4.0", "cc-by-nc-sa-3.0",
    "cc-by-nc-sa-4.0",
}  # fmt: skip
# The Hub's name of each of our scores.
METRICS = {"bleu": "bleu", "bleu_tokenized": "bleu", "chrf": "chrf"} | {f"rouge{n}": "rouge" for n in "12L"}
USE = """\
## Use

```bash
convs2s translate --model THIS_FOLDER < source.txt > translation.txt
```

```python
import convs2s

translator = convs2s.load("THIS_FOLDER")
print(translator.translate(["..."]))
```

For a model on the Hugging Face Hub, give `hf:OWNER/NAME` instead of a folder.
"""


def describe_model(model: Path, segmentation: str) -> dict[str, str]:
    """Return the rows of a card on the model in a folder, without loading its weights.

    The segmentation is bpe, word or sentencepiece.
    """
    description = read_json(model / DESCRIPTION)
    with safe_open(model / WEIGHTS, framework="numpy") as weights:
        shapes = [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118  # no dict
    architecture = description["architecture"]
    encoder, decoder = (
        list(zip(architecture[f"{half}_widths"], architecture[f"{half}_kernels"], strict=True))
        for half in ("encoder", "decoder")
    )
    seen = [receptive_field([kernel for _, kernel in blocks]) for blocks in (encoder, decoder)]
    sizes = f"{description['source_size']:,} source and {description['target_size']:,} target entries"
    return {
        "layers": f"{len(encoder)} encoder, {len(decoder)} decoder; they see {seen[0]} and {seen[1]} tokens",
        "encoder, from the bottom": describe_blocks(encoder),
        "decoder, from the bottom": describe_blocks(decoder),
        "embedding": f"{architecture['embedding_size']} channels",
        "parameters": f"{sum(map(math.prod, shapes)):,}, with weight normalization folded in",
        "vocabulary": f"{segmentation}; {sizes}",
    }


def describe_blocks(blocks: Sequence[tuple[int, int]]) -> str:
    """Return widths and kernel widths from the bottom, such as "9 x 512, kernel 3; 4 x 1024, kernel 3"."""
    runs = itertools.groupby(blocks)
    return "; ".join(f"{len(list(run))} x {width}, kernel {kernel}" for (width, kernel), run in runs)


def model_card(facts: Facts) -> str:
    """Return the card as Markdown, after its front matter; it depends only on the facts."""
    scores = {name: (title, facts.scores[name]) for name, title in NAMES.items() if name in facts.scores}
    source, target = map(describe_language, facts.languages)
    table = {
        "languages": f"{source} to {target}",
        "training data": "; ".join(
            filter(None, [facts.name, facts.domain, f"license: {facts.data_license}"])
        ),
        "sentence pairs": f"{facts.pairs:,}, after filtering",
        "words in them": f"{facts.words[0]:,} source, {facts.words[1]:,} target",
        **facts.mistakes,
        **facts.model,
        "seed": str(facts.seed),
    }
    return "\n".join([
        front_matter(facts.name, facts.languages, facts.data_license, scores, facts.test_set),
        f"# {facts.name}",
        "",
        f"A convolutional sequence to sequence model (Gehring et al., 2017), from {source} to {target}.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {key} | {escape_bars(value)} |" for key, value in table.items()),
        "",
        *score_lines(scores, facts.signatures, facts.test_set),
        *example_lines(facts.examples),
        "## Training",
        "",
        "| key of params.yaml | value |",
        "|---|---|",
        *(f"| `{key}` | {escape_bars(json.dumps(value))} |" for key, value in facts.training.items()),
        "",
        USE,
        "One line in, one line out. It works best on text like its training data. It may omit, add or invent "
        "content, so have a human check anything that matters.",
        "",
    ])  # fmt: skip


def score_lines(
    scores: Mapping[str, tuple[str, float]], signatures: Mapping[str, str], test_set: str
) -> list[str]:
    """Return the test set, and the table of scores with their signatures; nothing if there are no scores."""
    if not scores:
        return []
    rows = [
        f"| {title} | {value:.2f} | `{escape_bars(signatures.get(name, ''))}` |"
        for name, (title, value) in scores.items()
    ]
    table = ["| score | | sacreBLEU signature |", "|---|---|---|", *rows]
    return ["## Scores on the test set", "", f"`{test_set}`", "", *table, ""]


def example_lines(examples: Sequence[tuple[str, str]]) -> list[str]:
    """Return the table of examples; nothing if there are none."""
    rows = [f"| {escape_bars(source)} | {escape_bars(reference)} |" for source, reference in examples]
    return (
        ["## Sentences to try", "", "| test sentence | reference |", "|---|---|", *rows, ""] if rows else []
    )


def describe_language(code: str) -> str:
    """Return a language with its code, such as "German (de)"; a code without a name is returned unchanged."""
    return code if name(code) == code else f"{name(code)} ({code})"


def escape_bars(text: str) -> str:
    """Return text for a table cell, which an unescaped bar would end, even within code."""
    return text.replace("|", r"\|")


def front_matter(
    name: str,
    languages: tuple[str, str],
    data_license: str,
    scores: Mapping[str, tuple[str, float]],
    test_set: str,
) -> str:
    """Return the block between lines of three hyphens; the license of the data also applies to the model."""
    task = "translation" if languages[0] != languages[1] else "summarization"
    words = make_identifier(data_license)
    content: dict[str, Any] = {
        "language": list(dict.fromkeys(languages)),
        **({"license": words} if words in LICENSES else {"license": "other", "license_name": words}),
        "library_name": "convs2s",
        "pipeline_tag": task,
        "tags": ["convs2s", "fconv", "arxiv:1705.03122"],
    }
    if scores:
        content["metrics"] = list(dict.fromkeys(METRICS[score] for score in scores))
        metrics = [
            {"type": METRICS[score], "name": title, "value": round(value, 2)}
            for score, (title, value) in scores.items()
        ]
        dataset = {"type": make_identifier(name), "name": test_set or name}
        results = [{"task": {"type": task}, "dataset": dataset, "metrics": metrics}]
        content["model-index"] = [{"name": name, "results": results}]
    text = io.StringIO()
    yaml = YAML()
    yaml.width = 2**16  # never wrap a value
    yaml.dump(content, text)
    return f"---\n{text.getvalue()}---\n"


def make_identifier(text: str) -> str:
    """Return text as an identifier: lower-case letters, digits, dots and hyphens."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "unknown"

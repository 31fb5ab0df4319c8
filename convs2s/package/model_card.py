"""The model card: README.md of a model folder, with the front matter that the Hugging Face Hub reads."""

import itertools
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from safetensors import safe_open

from convs2s.model.description import WEIGHTS, read_description, receptive_field
from convs2s.package.facts import Facts
from convs2s.score.kinds import SCORES
from convs2s.text.languages import language_name

# The Hub's identifiers of licenses; any other license is `other` there, with a name.
LICENSE = re.compile(r"mit|apache-2\.0|cc0-1\.0|cc-by(-nc)?(-nd|-sa)?-[234]\.0")
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

From the Hugging Face Hub: `hf download OWNER/NAME --local-dir THIS_FOLDER`.

One line in, one line out. It works best on text like its training data. It may omit, add or invent
content, so have a human check anything that matters.
"""


def describe_model(model: Path, segmentation: str) -> dict[str, str]:
    """Return the rows of a card on the model in a folder; the segmentation is bpe, word or sentencepiece."""
    description = read_description(model)
    with safe_open(model / WEIGHTS, framework="numpy") as weights:
        shapes = [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118  # no dict
    p = description.architecture
    layers = f"{len(p.encoder_widths)} encoder, {len(p.decoder_widths)} decoder"
    seen = f"{receptive_field(p.encoder_kernels)} and {receptive_field(p.decoder_kernels)} tokens"
    sizes = f"{description.source_size:,} source and {description.target_size:,} target entries"
    return {
        "layers": f"{layers}; they see {seen}",
        "encoder, from the bottom": describe_blocks(p.encoder_widths, p.encoder_kernels),
        "decoder, from the bottom": describe_blocks(p.decoder_widths, p.decoder_kernels),
        "embedding": f"{p.embedding_size} channels",
        "parameters": f"{sum(map(math.prod, shapes)):,}, with weight normalization folded in",
        "vocabulary": f"{segmentation}; {sizes}",
    }


def describe_blocks(widths: Iterable[int], kernels: Iterable[int]) -> str:
    """Return widths and kernel widths from the bottom, such as "9 x 512, kernel 3; 4 x 1024, kernel 3"."""
    runs = itertools.groupby(zip(widths, kernels, strict=True))
    return "; ".join(f"{len(list(run))} x {width}, kernel {kernel}" for (width, kernel), run in runs)


def model_card(facts: Facts) -> str:
    """Return the card of a model that was trained here; it depends only on the facts."""
    data = (facts.name, facts.domain, f"license: {facts.data_license}")
    rows = {
        "languages": " to ".join(map(language_name, facts.languages)),
        "training data": "; ".join(filter(None, data)),
        "sentence pairs": f"{facts.pairs:,}, after filtering",
        "words in them": f"{facts.words[0]:,} source, {facts.words[1]:,} target",
        **facts.mistakes,
        **facts.model,
        "seed": str(facts.seed),
    }
    scores = []
    metrics = []
    for key, kind in SCORES.items():
        if kind.card and key in facts.scores:
            title, hub_name = kind.card
            score = facts.scores[key]
            scores.append((title, f"{score:.2f}", f"`{facts.signatures.get(key, '')}`"))
            metrics.append({"type": hub_name, "name": title, "value": round(score, 2)})
    training = [(f"`{key}`", json.dumps(value)) for key, value in facts.training.items()]
    caption = f"## Scores on the test set\n\n`{facts.test_set}`\n\n"
    tables = [
        format_table("", ("", ""), list(rows.items())),
        format_table(caption, ("score", "", "sacreBLEU signature"), scores),
        format_table("## Sentences to try\n\n", ("test sentence", "reference"), facts.examples),
        format_table("## Training\n\n", ("key of params.yaml", "value"), training),
    ]
    return format_card(facts.name, facts.languages, facts.data_license, tables, metrics, facts.test_set)


def format_card(
    title: str,
    languages: tuple[str, str],
    data_license: str,
    tables: Sequence[str],
    metrics: Sequence[Mapping[str, object]] = (),
    test_set: str = "",
) -> str:
    """Return a card as Markdown, after its front matter; the data's license also applies to the model."""
    task = "translation" if languages[0] != languages[1] else "summarization"
    license_name = make_identifier(data_license)
    content: dict[str, object] = {"language": list(dict.fromkeys(languages))}
    if LICENSE.fullmatch(license_name):
        content["license"] = license_name
    else:
        content["license"] = "other"
        content["license_name"] = license_name
    content["library_name"] = "convs2s"
    content["pipeline_tag"] = task
    content["tags"] = ["convs2s", "fconv", "arxiv:1705.03122"]
    if metrics:
        dataset = {"type": make_identifier(title), "name": test_set or title}
        results = [{"task": {"type": task}, "dataset": dataset, "metrics": metrics}]
        content["metrics"] = list(dict.fromkeys(metric["type"] for metric in metrics))
        content["model-index"] = [{"name": title, "results": results}]
    # JSON is YAML.
    front = "".join(f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in content.items())
    pair = " to ".join(map(language_name, languages))
    text = f"A convolutional sequence to sequence model (Gehring et al., 2017), from {pair}."
    return "\n".join([f"---\n{front}---\n", f"# {title}\n", f"{text}\n", *filter(None, tables), USE])


def format_table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table below a caption, nothing if it has no rows; bars, which end cells, escaped."""
    if not rows:
        return ""
    cells = [[text.replace("|", r"\|") for text in row] for row in (head, ["---"] * len(head), *rows)]
    return caption + "".join(f"| {' | '.join(row)} |\n" for row in cells)


def make_identifier(text: str) -> str:
    """Return text as an identifier: lower-case letters, digits, dots and hyphens."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "unknown"

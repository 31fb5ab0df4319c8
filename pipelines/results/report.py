"""What `make repro` prints at its end: the scores, example translations, and where everything lies."""

import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from convs2s.score.identity import SetIdentity
from convs2s.text.corpus.files import read_lines

WIDTH = 100  # columns
COLUMNS = {
    "bleu": ("BLEU", "{:.2f}"),
    "bleu_tokenized": ("tokenized BLEU", "{:.2f}"),
    "chrf": ("chrF2", "{:.2f}"),
    "rouge1": ("ROUGE-1", "{:.2f}"),
    "rouge2": ("ROUGE-2", "{:.2f}"),
    "rougeL": ("ROUGE-L", "{:.2f}"),
    "length_ratio": ("length ratio", "{:.4f}"),
    "unknown_words": ("<unk>", "{:,.1f}"),
}
RESULTS = {
    "evaluation/metrics.json": "the scores; compare runs by: dvc metrics diff",
    "evaluation/scores.csv": "the scores as a table",
    "evaluation/signatures.json": "how they were computed",
    "evaluation/by_length.csv": "scores by source length",
    "evaluation/examples.tsv": "the examples above, with a score for each",
    "evaluation/pictures": "attention heat maps and score plots (PNG)",
    "replaced": "translations of the test set, a folder per model: plain.txt, replaced.txt",
    "translations": "their tokens, scores and attention, a folder per model",
    "models/*": "model to use: convs2s translate --model {path}",
    "trained/*/curves": "training curves: dvc plots show",
    "filtered/rules.csv": "how many pairs each filter rule removed",
    "alignment/dictionary.tsv": "source words with the target words they are aligned with",
}


def report(data: Path) -> str:
    """Return the report on the results in `data`, as plain text of at most 100 columns where words allow.

    Raises:
        FileNotFoundError: if the pipeline has not been run to its end.
    """
    evaluation = data / "evaluation"
    scores = pd.read_csv(result(evaluation / "scores.csv"), dtype={"member": str})
    signatures = json.loads(result(evaluation / "signatures.json").read_text(encoding="utf-8"))
    test_set = wrapped("of ", str(SetIdentity.read(result(evaluation / "test_set.json"))))
    told = [*score_lines(scores), "", *test_set, "", *signature_lines(signatures)]
    sections = [
        section("Scores of the test set", told),
        section("Example translations", list(example_lines(result(evaluation / "examples.tsv")))),
        section("Corpus", list(corpus_lines(data / "filtered" / "report.json"))),
        section("Training", list(training_lines(data / "trained"))),
        section("Where everything lies", list(file_lines(data))),
    ]
    return "\n\n".join(text for text in sections if text) + "\n"


def result(path: Path) -> Path:
    """Return the path of a result that must be there.

    Raises:
        FileNotFoundError: if it is not.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} does not exist: the pipeline has not been run to its end. "
            "Run `make repro` (or `dvc repro`), which makes it; `dvc status` tells what is missing."
        )
    return path


def section(title: str, lines: list[str]) -> str:
    """Return a heading with its lines, or nothing if there are none."""
    return "\n".join([title, "-" * len(title), *lines]) if lines else ""


def score_lines(scores: pd.DataFrame) -> list[str]:
    """Return the score table: a row per seed, their mean and standard deviation, and the ensemble."""
    # With one seed the mean only repeats it.
    rows = scores if "std" in set(scores["member"]) else scores[scores["member"] != "mean"]
    names = {"std": "standard deviation"}
    models = [names.get(m, f"seed {m}" if m.isdigit() else m) for m in rows["member"]]
    width = max(map(len, models))
    shown = {"model".ljust(width): [model.ljust(width) for model in models]}
    if (rows["text"] != "plain").any():
        shown["unknown words"] = [{"plain": "kept"}.get(text, text) for text in rows["text"]]
    for name, (title, form) in COLUMNS.items():
        if name in rows:
            shown[title] = [form.format(value) for value in rows[name]]
    return pd.DataFrame(shown).to_string(index=False).split("\n")


def signature_lines(signatures: dict[str, str]) -> list[str]:
    """Return a line per score that has a signature: of sacreBLEU, or one like it of ROUGE."""
    width = max(len(COLUMNS[name][0]) for name in signatures)
    return [f"{COLUMNS[name][0]:{width}}  {signature}" for name, signature in signatures.items()]


def example_lines(path: Path) -> Iterator[str]:
    """Yield the examples, wrapped, with an empty line between two."""
    header, *rows = [line.split("\t") for line in read_lines(path)]
    for number, row in enumerate(rows):
        example = dict(zip(header, row, strict=True))
        model = f"seed {example['model']}" if example["model"].isdigit() else f"the {example['model']}"
        if number:
            yield ""
        yield f"line {example['line']}, by {model}: sentence BLEU {example['bleu']}, chrF2 {example['chrf']}"
        for name in ("source", "hypothesis", "reference"):
            yield from wrapped(f"  {name:12}", example[name])


def wrapped(label: str, text: str) -> list[str]:
    """Return a text behind its label, on as many lines as it needs."""
    # A sentence may hold control characters; none may reach the terminal.
    visible = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return textwrap.wrap(
        visible or "(empty)",
        WIDTH,
        initial_indent=label,
        subsequent_indent=" " * len(label),
        break_on_hyphens=False,
    ) or [label.rstrip()]


def corpus_lines(path: Path) -> Iterator[str]:
    """Yield the filter's figures, if they are there."""
    if path.is_file():
        figures = flat(json.loads(path.read_text(encoding="utf-8")))
        width = max(map(len, figures), default=0)
        for name, value in figures.items():
            yield f"{name:{width}}  {number(value):>12}"


def training_lines(trained: Path) -> Iterator[str]:
    """Yield a table with a row per seed, of those whose training left its metrics."""
    rows = {
        path.parent.name: flat(json.loads(path.read_text(encoding="utf-8")))
        for path in sorted(trained.glob("*/metrics.json"))
    }
    if rows:
        table = pd.DataFrame.from_dict(rows, orient="index").map(number)
        table.insert(0, "seed", table.index)
        # One figure a line and one seed a column: that stays narrow, however many figures there are.
        yield from table.T.to_string(header=False).split("\n")


def file_lines(data: Path) -> Iterator[str]:
    """Yield the path of each result that is there, and what it is."""
    found = [(path, text) for pattern, text in RESULTS.items() for path in sorted(data.glob(pattern))]
    width = max((len(str(path)) for path, _ in found), default=0)
    for path, text in found:
        yield f"{path!s:{width}}  {text.format(path=path)}"


def flat(figures: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested figures as one level, names joined by spaces."""
    result: dict[str, Any] = {}
    for key, value in figures.items():
        name = f"{prefix}{key}".replace("_", " ")
        result |= flat(value, f"{name} ") if isinstance(value, dict) else {name: value}
    return result


def number(value: Any) -> str:
    """Return a figure for reading: 30,000 or 12.35."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.4g}" if abs(value) < 1 else f"{value:,.2f}"


def main(arguments: list[str]) -> int:
    """Print the report on the folder given, `data` if none is; return the exit status."""
    try:
        text = report(Path(arguments[0] if arguments else "data"))
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    # A terminal of another encoding shall show a question mark, not stop the report.
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

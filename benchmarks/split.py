"""Where sentences end: tests of sentencex and the Golden Rules, by us, by sentencex alone, and rule by rule.

    git clone https://github.com/wikimedia/sentencex
    git clone https://github.com/nipunsadvilkar/pySBD
    python -m benchmarks.split --sentencex sentencex --pysbd pySBD

counts the cases of both in which all sentences are found, white space aside: the files of sentencex's tests,
and pySBD's copy of the Golden Rules with its other tests, but for those of text that it cleans first. Then,
for each rule in `convs2s/text/sentences.py`, it counts the cases that are right only with the rule, and those
that are right only without.
"""

import argparse
import ast
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import sentencex

from benchmarks.harness import PATH, Report, program
from convs2s.text.sentences import CERTAIN_ENDS, JOINS, LIKELY_ENDS, MASKS, split_sentences

PYSBD_LANGUAGES = {
    "amharic": "am", "arabic": "ar", "armenian": "hy", "bulgarian": "bg", "burmese": "my", "chinese": "zh",
    "danish": "da", "deutsch": "de", "dutch": "nl", "english": "en", "english_clean": "en", "french": "fr",
    "greek": "el", "hindi": "hi", "italian": "it", "japanese": "ja", "kazakh": "kk", "marathi": "mr",
    "persian": "fa", "polish": "pl", "russian": "ru", "slovak": "sk", "spanish": "es", "urdu": "ur",
}  # fmt: skip
"""ISO 639 codes by the names of its test files."""
CLEANED = re.compile("^TESTS_WITH_CLEAN|^ES_CLEAN|^DA_RULES_CLEAN|PDF")
"""Lists of cases of text that must be cleaned first: broken lines, HTML, missing spaces."""


class Case(NamedTuple):
    """A text and its sentences, in some language."""

    language: str
    text: str
    sentences: list[str]


Split = Callable[[str, str], Sequence[str]]
"""Returns the sentences of a text in a language."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the two repositories."""
    parser.add_argument("--sentencex", **PATH, metavar="DIR", help="a checkout of wikimedia/sentencex")
    parser.add_argument("--pysbd", **PATH, metavar="DIR", help="a checkout of nipunsadvilkar/pySBD")


def measure(options: argparse.Namespace, report: Report) -> None:
    """Count what is right."""
    sets = {
        "sentencex's tests": list(read_sentencex(options.sentencex / "tests")),
        "Golden Rules": list(read_pysbd(options.pysbd / "tests" / "lang")),
    }
    ours = {name: find_right(cases, split_sentences) for name, cases in sets.items()}
    report.table(["set", "cases", "languages", "ours", "sentencex alone"], "Cases that are right")
    for name, cases in sets.items():
        alone = find_right(cases, lambda text, language: sentencex.segment(language, text))
        languages = len({case.language for case in cases})
        report.add(
            set=name, cases=len(cases), languages=languages, ours=len(ours[name]), sentencex=len(alone)
        )
    report.table(["rule", "set", "gained", "lost"], "Cases that a rule makes right, and wrong")
    for table in (MASKS, CERTAIN_ENDS, LIKELY_ENDS, JOINS):
        for rule in list(table):
            for name, cases in sets.items():
                with mock.patch.dict(table):
                    del table[rule]
                    without = find_right(cases, split_sentences)
                gained, lost = len(ours[name] - without), len(without - ours[name])
                report.add(rule=rule, set=name, gained=gained, lost=lost)


def find_right(cases: Sequence[Case], split: Split) -> set[int]:
    """Return the numbers of the cases whose sentences are found."""
    return {
        number
        for number, case in enumerate(cases)
        if normalize(split(case.text, case.language)) == normalize(case.sentences)
    }


def normalize(sentences: Sequence[str]) -> list[str]:
    """Return sentences without the difference between kinds of white space, and without empty ones."""
    return [" ".join(sentence.split()) for sentence in sentences if sentence.strip()]


def read_sentencex(folder: Path) -> Iterator[Case]:
    """Yield the cases of sentencex's tests: a text, ---, a sentence a line, ===; # begins a comment."""
    for path in sorted(folder.glob("*.txt")):
        language = "en" if path.stem == "lists" else path.stem
        content = re.sub(r"^#.*", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for case in re.split(r"^===.*", content, flags=re.MULTILINE):
            text, separator, sentences = case.strip().partition("\n---")
            if separator:
                yield Case(language, text.strip(), sentences.replace("\\n", " ").splitlines())


def read_pysbd(folder: Path) -> Iterator[Case]:
    """Yield the cases of pySBD's tests, lists of (text, sentences) in Python, some as pytest.param."""
    for path in sorted(folder.glob("test_*.py")):
        language = PYSBD_LANGUAGES[path.stem.removeprefix("test_")]
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            match node:
                case ast.Assign([ast.Name(name)], ast.List(rows)) if not CLEANED.search(name):
                    for row in rows:
                        values = row.args if isinstance(row, ast.Call) else row.elts  # type: ignore[attr-defined]
                        yield Case(language, *map(ast.literal_eval, values[:2]))


main = program(__doc__, add_options, measure, ["sentencex"])

if __name__ == "__main__":
    main()

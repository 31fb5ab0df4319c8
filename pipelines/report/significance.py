"""Whether a difference of BLEU is more than chance: sacreBLEU's paired bootstrap (Koehn, 2004)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from convs2s.score.corpus_scores import TOKENIZERS, WORDS
from pipelines.report.run import Run, group

MEANING = (
    "p: how often chance alone gives such a difference of BLEU on a test set like this one, by sacreBLEU's "
    "paired bootstrap; below 0.05, the difference is usually called significant; equal translations have "
    "none. Of several seeds without an "
    "ensemble, the first one's translations are compared. Another seed alone can make a significant "
    "difference: for a claim, train several."
)


class Comparison(NamedTuple):
    """A run's BLEU, and its difference from that of the first run, which has none itself."""

    run: Run
    bleu: float
    mean: float
    """Over 1,000 bootstrap samples of the test set."""
    interval: float
    """Half the width of the interval that has 95 % of them."""
    difference: float | None
    p: float | None
    """None if the translations are the same, for which sacreBLEU has the least p there is."""


class Significance(NamedTuple):
    """Runs compared with the first one, and sacreBLEU's signature of the comparison."""

    comparisons: list[Comparison]
    signature: str


def compare_all(runs: Sequence[Run]) -> list[Significance]:
    """Return the comparisons of runs that have the same test set, each with the first of them."""
    return [compare_bleu(same) for same in group(runs, identify_references) if len(same) > 1]


def identify_references(run: Run) -> str:
    """Return a text that is equal for runs whose BLEU can be compared: the test set as it is scored."""
    references = [sentence.reference for sentence in run.sentences]
    return "\n".join([run.test_set, choose_tokenizer(run), *references])


def choose_tokenizer(run: Run) -> str:
    """Return the name of BLEU's tokenizer for the run's target language."""
    return TOKENIZERS.get(run.sections["languages"][1], WORDS)


def compare_bleu(runs: Sequence[Run]) -> Significance:
    """Compare each run with the first; all must have the same references, by `identify_references`.

    These are the figures of sacreBLEU's command: `sacrebleu REFERENCE -i FIRST OTHER ... --paired-bs`.
    """
    references = [sentence.reference for sentence in runs[0].sentences]
    systems: list[tuple[str, Sequence[str]]] = [
        (str(number), [sentence.translation for sentence in run.sentences]) for number, run in enumerate(runs)
    ]
    metric = BLEU(tokenize=choose_tokenizer(runs[0]))
    signatures, columns = PairedTest(systems, {"BLEU": metric}, [references], test_type="bs")()
    results: Sequence[Any] = columns["BLEU"]  # typed as names of systems, too
    first = results[0].score
    comparisons = [
        Comparison(
            run=run,
            bleu=result.score,
            mean=float(result.mean),
            interval=float(result.ci),
            difference=None if result is results[0] else result.score - first,
            p=None if translations == systems[0][1] else result.p_value,
        )
        for run, result, (_, translations) in zip(runs, results, systems, strict=True)
    ]
    return Significance(comparisons, str(signatures["BLEU"]))

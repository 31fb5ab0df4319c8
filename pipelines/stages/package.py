"""Stage package@SEED: a trained model and everything it needs to translate text -> a folder for users."""

from pathlib import Path

from convs2s.config.package import PackageParams
from convs2s.config.replace import ReplaceParams
from convs2s.config.tokenize import TokenizeParams
from convs2s.config.translate import TranslateSection
from convs2s.decode.tuned_alpha import settle
from convs2s.package.folder import Settings, write_package
from convs2s.package.model_card import Facts, model_card, read_sizes
from convs2s.score.identity import SetIdentity
from convs2s.text.corpus.json_files import read_json
from convs2s.text.vocabulary.codec import read_kind
from pipelines.stages.values import Languages


def run(
    params: PackageParams,
    tokenize: TokenizeParams,
    translate: TranslateSection,
    replace: ReplaceParams,
    languages: Languages,
    model: Path,
    vocabulary: Path,
    truecasers: Path,
    alignment: Path,
    candidates: Path,
    tuned: Path,
    evaluation: Path,
    filtering: Path,
    seed: int,
    out: Path,
) -> None:
    """Write the model folder `out`, for `convs2s translate` and `convs2s.load`.

    From `evaluation`, metrics.json, signatures.json and test_set.json give the model card this seed's scores;
    from `filtering`, report.json of the stage filter, comes the number of training pairs; from `tuned` comes
    the alpha for `translate.alpha: tuned`.
    """
    metrics = read_json(evaluation / "metrics.json")
    facts = Facts(
        params.name,
        languages,
        params.data_license,
        read_json(filtering)["train"]["pairs"],
        read_sizes(model),
        read_kind(vocabulary / "segmentation.json"),
        seed,
        metrics["seeds"][str(seed)],
        read_json(evaluation / "signatures.json"),
        str(SetIdentity.read(evaluation / "test_set.json")),
    )
    settings = Settings(languages, tokenize, settle(translate, tuned), replace.enabled)
    dictionary, table = alignment / "dictionary.tsv", candidates / "candidates.npz"
    write_package(out, model, vocabulary, dictionary, table, settings, model_card(facts), truecasers)

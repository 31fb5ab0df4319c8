"""A finished run of the pipeline: a folder, or a revision or experiment whose outputs are in DVC's cache."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
from pydantic import TypeAdapter

from convs2s.base.files import read_lines
from convs2s.config.load import flatten_values, parse_yaml
from convs2s.config.params import Params
from convs2s.config.tokenize import TokenizeParams
from convs2s.score.identity import SetIdentity
from convs2s.text.words.tokenization import Tokenizer
from pipelines import shell
from pipelines.check import check_git
from pipelines.report.scores import find, read_result

if TYPE_CHECKING:
    from dvc.api import DVCFileSystem

LOCK = "dvc.lock"
DATE = "%Y-%m-%d %H:%M"
COMMIT = "--format=%h %s"
FILES = (
    "evaluation", "raw/test", "filtered/report.json", "filtered/rules.csv", "filtered/removed.json",
    "replaced", "costs",
)  # fmt: skip
OF_SEED = "trained/{}/metrics.json", "trained/{}/curves"


class ScoredSentence(NamedTuple):
    """A sentence of the test set."""

    source: str
    reference: str
    """As it is scored."""
    translation: str
    """The final one, of the ensemble or else of the first seed."""


class Origin(NamedTuple):
    """When a run was made, and from what."""

    date: str
    """Of the commit or experiment; of a folder, when the scores were written. Local time."""
    commit: str
    """Hash and subject of the commit that the run is in or, for an experiment or edits, is based on."""


@dataclass(frozen=True)
class Run:
    """A finished run, whose files are read when they are needed; missing ones raise FileNotFoundError."""

    name: str
    folder: Path  # with data/
    origin: Origin

    @cached_property
    def sections(self) -> dict[str, Any]:
        """The values of params.yaml with which the run was made, by section, as dvc.lock has them.

        Of the section download it has one part for each split, such as `download.train`.
        """
        stages = parse_yaml(find(self.folder / LOCK).read_text(encoding="utf-8"), LOCK)["stages"]
        recorded = {name: stage.get("params", {}).get("params.yaml", {}) for name, stage in stages.items()}
        seeds = {str(seed) for seed in recorded["evaluate"]["seeds"]}
        values: dict[str, Any] = {}
        for name, stage_values in recorded.items():
            item = name.partition("@")[2]
            if not item.isdigit() or item in seeds:  # others are of seeds that are no longer used
                values |= stage_values
        order = list(Params.model_fields)
        names = sorted(values, key=lambda name: order.index(name.partition(".")[0]))
        return {name: values[name] for name in names}

    @property
    def params(self) -> dict[str, Any]:
        """Each of these values by its dotted name."""
        return flatten_values(self.sections)

    @property
    def seeds(self) -> list[str]:
        return [str(seed) for seed in self.sections["seeds"]]

    @property
    def member(self) -> str:
        """The ensemble if there is one, or else the first seed."""
        return "ensemble" if "ensemble" in self.json("evaluation/metrics.json") else self.seeds[0]

    @property
    def test_set(self) -> str:
        return str(SetIdentity(**self.json("evaluation/test_set.json")))

    def json(self, path: str) -> Any:
        """Return the content of a JSON file of data/."""
        return read_result(self.folder / "data" / path)

    def lines(self, path: str) -> list[str]:
        """Return the lines of a text file of data/."""
        return list(read_lines(find(self.folder / "data" / path)))

    def table(self, path: str) -> pd.DataFrame:
        """Return the content of a CSV file of data/."""
        return pd.read_csv(find(self.folder / "data" / path), dtype={"member": str})

    @cached_property
    def sentences(self) -> list[ScoredSentence]:
        """The test set with its translations."""
        text = "replaced" if self.sections["replace"]["enabled"] else "plain"
        sources = self.lines("raw/test/source.txt")
        references = self.lines("raw/test/target.txt")
        translations = self.lines(f"replaced/{self.member}/{text}.txt")
        params = TypeAdapter(TokenizeParams).validate_python(self.sections["tokenize"])
        tokenizer = Tokenizer(self.sections["languages"][1], params)
        return [
            ScoredSentence(source, tokenizer.reference(reference), translation)
            for source, reference, translation in zip(sources, references, translations, strict=True)
        ]


def open_run(name: str, root: Path, temporary: Path) -> Run:
    """Return the run of a folder with params.yaml and data/, or of a revision or experiment of a repository.

    `temporary` is a folder for files from DVC's cache. Raises a ValueError if there is no such run, or its
    outputs are not in the cache.
    """
    folder = Path(name)
    if (folder / "params.yaml").is_file():
        is_here = folder.resolve() == root.resolve()
        return Run("workspace" if is_here else name, folder, find_origin(folder))
    return open_revision(name, root, temporary)


def open_revision(name: str, root: Path, temporary: Path) -> Run:
    """Return the run of a revision or experiment of a repository, as `open_run` does."""
    # Only here, because they take half a second.
    from dvc.api import DVCFileSystem  # noqa: PLC0415
    from dvc.exceptions import DvcException  # noqa: PLC0415
    from dvc_data.index import DataIndexDirError  # noqa: PLC0415
    from scmrepo.exceptions import SCMError  # noqa: PLC0415

    folder = temporary / name.replace("/", "-")
    check_git(root)
    # In a subfolder of a larger git repository, DVC names files from the top of that.
    prefix = shell.run("git", "rev-parse", "--show-prefix", cwd=root)
    try:
        files = DVCFileSystem(str(root), rev=name, subrepos=bool(prefix))
        files.info(f"{prefix}params.yaml")  # only this looks up the revision
        origin = look_up_origin(root, name)
    except (DvcException, SCMError, OSError) as error:
        raise ValueError(
            f"{name}: found neither a folder nor a revision ({error}). Expected a folder with params.yaml "
            "and data/, a git revision, or an experiment that dvc exp list shows."
        ) from error
    run = Run(name, folder, origin)
    try:
        fetch(files, prefix, [LOCK, *(f"data/{path}" for path in FILES)], folder)
        of_seeds = [f"data/{path.format(seed)}" for seed in run.seeds for path in OF_SEED]  # from dvc.lock
        fetch(files, prefix, of_seeds, folder)
    except (DvcException, DataIndexDirError, OSError) as error:
        raise ValueError(
            f"{name}: this revision has no dvc.lock, or its outputs are not in DVC's cache ({error}). After "
            "make repro, git add dvc.lock params.yaml && git commit. If another machine ran it, get the "
            "outputs: dvc pull --all-commits, or dvc exp pull. Otherwise, run it again."
        ) from error
    return run


def find_origin(folder: Path) -> Origin:
    """Return when the scores of a folder were written, and its commit, if it is in a git repository."""
    scores = folder / "data" / "evaluation" / "metrics.json"
    date = ""
    if scores.is_file():
        date = datetime.fromtimestamp(scores.stat().st_mtime).astimezone().strftime(DATE)
    try:
        commit = shell.run("git", "log", "-1", COMMIT, cwd=folder)
        edits = shell.run("git", "status", "--porcelain", "--", "params.yaml", LOCK, cwd=folder)
    except shell.CommandFailed:
        return Origin(date, "")
    return Origin(date, f"{commit}, with edits" if edits else commit)


def look_up_origin(root: Path, name: str) -> Origin:
    """Return the date and the commit of a revision or experiment."""
    experiments = shell.run("git", "for-each-ref", "--format=%(refname)", f"refs/exps/*/*/{name}", cwd=root)
    revision, based, base = name, "", name
    if experiments:
        revision = experiments.split("\n")[-1]
        *_, first_digits, other_digits, _ = revision.split("/")
        based, base = "based on ", first_digits + other_digits
    date = shell.run("git", "log", "-1", "--format=%cd", f"--date=format-local:{DATE}", revision, cwd=root)
    return Origin(date, based + shell.run("git", "log", "-1", COMMIT, base, cwd=root))


def fetch(files: "DVCFileSystem", prefix: str, paths: Iterable[str], folder: Path) -> None:
    """Copy files and folders of a revision; the prefix leads to the project's folder."""
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        files.get(prefix + path, str(folder / path), recursive=files.isdir(prefix + path))


def group(runs: Sequence[Run], key: Callable[[Run], str]) -> list[list[Run]]:
    """Return runs grouped by key, in the order in which keys first occur."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return list(groups.values())

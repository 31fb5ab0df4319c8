"""Stage snapshot: params.yaml, code and libraries, as a run begins -> what all other stages record.

People edit params.yaml and code while a run is going on. DVC reads what a stage depends on several times,
also after the stage's command has ended, and records what it finds last. Therefore stages depend on this
snapshot, which nobody edits, and take their values from it: an edit is for the next run. DVC takes it at
every run, as no file says which versions of the libraries are installed.
"""

from collections.abc import Mapping
from pathlib import Path

from convs2s.base.files import atomic_path, read_lines, write_lines
from convs2s.config.load import load_params, parse_params, read_text
from convs2s.config.params import Params
from convs2s.package.start import check_models
from pipelines.stages._code import Module, digests, param_lines, read_project
from pipelines.stages._params import PARAMS, module_of

PACKAGES = ("convs2s", "pipelines/stages")


def run(params: Path, library: Path, stages: Path, out: Path) -> None:
    """Write out/STAGE.txt for each stage of dvc.yaml, params.yaml and digests.txt.

    STAGE.txt has a line `param NAME VALUE` for each value that the stage depends on, `code DIGEST MODULE`
    for each module that it can execute, and `library VERSION NAME` for each library for text that these
    import. digests.txt has the MD5 and the digest of each of these modules.

    Args:
        library: folder of the package `convs2s`.
        stages: folder of the package `pipelines.stages`.

    Raises:
        ValueError: if params.yaml is invalid.
        FileNotFoundError, ValueError: as `check_models`.
    """
    text, project = read_text(params), read_project([library, stages])
    values = parse_params(text, str(params))
    check_models(values)
    content = contents(values, project)
    code = {line.split(" ")[2] for lines in content.values() for line in lines if line.startswith("code ")}
    with atomic_path(out) as temporary:
        temporary.mkdir()
        (temporary / "params.yaml").write_text(text, encoding="utf-8")
        modules = [project[name] for name in sorted(code)]
        write_lines(temporary / "digests.txt", [f"{one.checksum} {one.digest}" for one in modules])
        for name, lines in content.items():
            write_lines(temporary / f"{name}.txt", lines)


def find_changed(snapshot: Path, root: Path) -> set[str]:
    """Return the stages whose files in a snapshot would be others if it was taken now."""
    params, project = load_params(root / "params.yaml"), read_project(map(Path, PACKAGES), root)
    files = {name: snapshot / f"{name}.txt" for name in PARAMS if (snapshot / f"{name}.txt").is_file()}
    now = contents(params, project, root) if files else {}
    return {name for name, path in files.items() if [*read_lines(path)] != now[name]}


def contents(params: Params, project: Mapping[str, Module], root: Path = Path()) -> dict[str, list[str]]:
    """Return the lines for each stage."""
    code = digests(project)
    return {name: [*param_lines(params, keys, root), *code[module_of(name)]] for name, keys in PARAMS.items()}

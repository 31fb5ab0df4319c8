"""Stage snapshot: params.yaml and all code, as a run begins -> the values and digests that stages record.

People edit params.yaml and code while a run is going on. DVC reads what a stage depends on several times,
also after the stage's command has ended, and records what it finds last. Therefore stages depend on this
snapshot, which nobody edits, and take their values from it: an edit is for the next run. Only this stage and
stage checksums depend on the files themselves. If a file changes between the moments when one of them reads
it and when DVC records it, the two disagree, and this stage fails.
"""

from collections.abc import Mapping
from pathlib import Path

from convs2s.config.load import parse_params, read_text
from convs2s.config.params import Params
from convs2s.text.corpus.files import atomic_path, read_lines, write_lines
from pipelines.stages._code import Module, checksums, digests, param_lines, read_project
from pipelines.stages._params import PARAMS, module_of


def run(params: Path, library: Path, stages: Path, before: Path, out: Path) -> None:
    """Write out/STAGE.txt for each stage of dvc.yaml, params.yaml and files.txt.

    STAGE.txt has a line `param NAME VALUE` for each value that the stage depends on, and `code DIGEST MODULE`
    for each module that it can execute. files.txt has checksum, digest and path of these modules.

    Args:
        library: folder of the package `convs2s`.
        stages: folder of the package `pipelines.stages`.
        before: from stage checksums; removed if it disagrees with the files, so that DVC makes it anew.

    Raises:
        ValueError: if params.yaml is invalid, or a file has changed since stage checksums read it.
    """
    text, project = read_text(params), read_project([library, stages])
    changed = {*read_lines(before)} ^ {*checksums(text, project)}
    if changed:
        before.unlink()
        names = sorted({line.split(" ", 1)[1] for line in changed})
        raise ValueError(
            f"{', '.join(names[:5])} changed while this run was beginning. Nothing was computed with it; run "
            "the same command again."
        )
    content = contents(parse_params(text, str(params)), project)
    with atomic_path(out) as temporary:
        temporary.mkdir()
        (temporary / "params.yaml").write_text(text, encoding="utf-8")
        code = {
            line.split(" ")[2] for lines in content.values() for line in lines if line.startswith("code ")
        }
        files = [project[name] for name in sorted(code)]
        write_lines(temporary / "files.txt", [f"{one.checksum} {one.digest} {one.path}" for one in files])
        for name, lines in content.items():
            write_lines(temporary / f"{name}.txt", lines)


def contents(params: Params, project: Mapping[str, Module]) -> dict[str, list[str]]:
    """Return the lines for each stage."""
    code = digests(project)
    return {
        name: [*param_lines(params, keys), *(f"code {line}" for line in code[module_of(name)])]
        for name, keys in PARAMS.items()
    }

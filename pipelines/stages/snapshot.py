"""Stage snapshot: params.yaml and all code, as a run begins -> the values and digests that stages record.

People edit params.yaml and code while a run is going on. DVC reads what a stage depends on several times,
also after the stage's command has ended, and records what it finds last. Therefore stages depend on this
snapshot, which nobody edits, and take their values from it: an edit is for the next run. Only this stage and
stage checksums depend on the files themselves. If a file changes between the moments when one of them reads
it and when DVC records it, the two disagree, and this stage fails.
"""

from pathlib import Path

from convs2s.config.load import read_text
from convs2s.text.corpus.files import atomic_path, read_lines, write_lines
from pipelines.stages._code import checksums, digests, read_project


def run(params: Path, library: Path, stages: Path, before: Path, out: Path) -> None:
    """Write out/params.yaml, code/STAGE.txt for each stage, and files.txt.

    STAGE.txt has a line with digest and name for each module that the stage can execute; files.txt a line
    with checksum, digest and path for each module.

    Args:
        library: folder of the package `convs2s`.
        stages: folder of the package `pipelines.stages`.
        before: from stage checksums; removed if it disagrees with the files, so that DVC makes it anew.

    Raises:
        ValueError: if params.yaml is invalid, or a file has changed since stage checksums read it.
    """
    text, project = read_text(params), read_project([library, stages])
    changed = sorted({line.split(" ", 1)[1] for line in {*read_lines(before)} ^ {*checksums(text, project)}})
    if changed:
        before.unlink()
        raise ValueError(
            f"{', '.join(changed[:5])} changed while this run was beginning. Nothing was computed with it; "
            "run the same command again."
        )
    with atomic_path(out) as temporary:
        (temporary / "code").mkdir(parents=True)
        (temporary / "params.yaml").write_text(text, encoding="utf-8")
        files = [f"{one.checksum} {one.digest} {one.path}" for one in project.values()]
        write_lines(temporary / "files.txt", files)
        for stage, found in digests(project).items():
            write_lines(temporary / "code" / f"{stage}.txt", found)

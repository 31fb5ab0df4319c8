"""What a GPU does with convs2s: `make gpu-report` writes report.md and report.json within 10 minutes.

The first part says whether results are right: without that, no speed matters. Then come what starting an
operation costs the host, products, search, updates, the default preset from text to BLEU, and what
torch.compile takes. Each part is a process of its own: if one fails or its time is up, the others still run,
and its rows so far are kept. No network is needed. --toy runs all at toy size, on a CPU if there is no
GPU; --parts runs some of them, and adds them to the report that is there.
"""

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from convs2s.base.messages import report_errors

SECONDS = 590
"""For all parts together; so the limits of the parts sum to this."""
SHORTEST = 20
"""A part for which fewer seconds are left does not begin."""
ROOT = Path(__file__).parents[2]
TESTS = tuple(sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_on_gpu.py")))
FURTHER = (
    *("beartype", "filelock", "fsspec", "lxml", "matplotlib", "nltk", "pandas", "pooch", "psutil"),
    *("pytest", "pytest-timeout", "requests", "rouge-score", "ruamel.yaml", "sacrebleu"),
)
"""Packages of extras that the parts need."""
SMALL = "default", "recorded", "compiled", "compiled per shape"


@dataclass(frozen=True)
class Part:
    """A part of the report.

    Attributes:
        name: for --parts.
        command: arguments of `python -m`.
        seconds: at most.
        toy: the command at toy size; None for the same one with --toy.
    """

    name: str
    title: str
    command: tuple[str, ...]
    seconds: int
    toy: tuple[str, ...] | None = None


def parts(folder: Path, given_model: Sequence[str] = ()) -> list[Part]:
    """Return all parts, in the order in which they run.

    Args:
        folder: of the report.
        given_model: options for a model whose search to measure, too.
    """
    here = "benchmarks.gpu_report"
    updates = f"{here}.updates", "--variants"
    tests = "pytest", "-v", "-m", "gpu", "-p", "no:cacheprovider", *TESTS
    trained = folder / "default-preset"
    texts = f"--model={trained}/data/models/1", f"--source={trained}/data/raw/test/source.txt"
    text_to_text = "benchmarks.text_to_text", *texts
    return [
        Part("results", "Results against the CPU and fairseq", (*tests, "-k", "not compiled"), 90,
             toy=(*tests, "-k", "fairseqs")),
        Part("launches", "What an operation costs the host", (f"{here}.launches",), 50),
        Part("products", "Matrix products", (f"{here}.products",), 30),
        Part("search", "Search", (f"{here}.searches", *given_model), 80),
        Part("updates", "Updates", (*updates, "default", "in parts"), 40),
        Part("sentences", "Updates of 48 sentences", (*updates, *SMALL, "--tokens=1248"), 80),
        Part("preset", "The default preset, from text to BLEU", (f"{here}.preset", f"--out={trained}"), 100),
        Part("texts", "From text to text", (*text_to_text, "--device=cuda", "--processes=4"), 40,
             toy=(*text_to_text, "--sentences=40", "--rounds=1")),
        Part("compiled", "Updates with torch.compile", (*updates, "compiled"), 80),
    ]  # fmt: skip


def run(command: Sequence[str], seconds: float) -> Iterator[str]:
    """Run a module; yield the lines that it prints, then how it ended and how long it took."""
    start = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    is_late = threading.Event()

    def end() -> None:
        is_late.set()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with the processes that compile for it

    timer = threading.Timer(seconds, end)
    timer.start()
    try:
        assert process.stdout is not None
        yield from process.stdout
        status = process.wait()
    finally:
        timer.cancel()
    ended = "ended, as its time was up" if is_late.is_set() else f"exit status {status}"
    yield f"\n{ended}, {time.monotonic() - start:.0f} s\n"


def write_report(folder: Path, chosen: Sequence[Part], *, is_toy: bool, is_added: bool = False) -> None:
    """Run parts, and write what they print and their rows as they come.

    Args:
        is_added: to the report that is there; otherwise it is written anew.
    """
    end = time.monotonic() + SECONDS
    file = folder / "report.json"
    results = json.loads(file.read_text(encoding="utf-8")) if is_added else {}
    with (folder / "report.md").open("a" if is_added else "w", encoding="utf-8") as report:

        def show(text: str) -> None:
            for stream in (sys.stdout, report):
                stream.write(text)
                stream.flush()

        if not is_added:
            show("# Report of a GPU\n")
        for part in chosen:
            show(f"\n## {part.title}\n\n")
            # At toy size all parts are to run, on however busy a machine.
            seconds = SECONDS if is_toy else min(part.seconds, end - time.monotonic())
            if seconds < SHORTEST:
                show(f"No time was left. Run it with PARTS={part.name}.\n")
                continue
            rows = folder / "rows.json"
            rows.unlink(missing_ok=True)
            command = [*part.command]
            if is_toy:
                command = [*part.toy] if part.toy else [*command, "--toy"]
            if command[0] != "pytest":
                command += ["--json", str(rows)]
            for line in run(command, seconds):
                show(line)
            if rows.exists():
                results[part.title] = json.loads(rows.read_text(encoding="utf-8"))
                rows.unlink()
            file.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def list_missing() -> list[str]:
    """Return the packages that the parts need and this Python lacks."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [re.split(r"[^\w.-]", requirement)[0] for requirement in project["dependencies"]]
    if sys.version_info >= (3, 14):
        names.remove("backports.zstd")
    return [name for name in (*names, *FURTHER) if not is_installed(name)]


def is_installed(distribution: str) -> bool:
    """Return whether this Python has a package, by the name that indexes use."""
    try:
        version(distribution)
    except PackageNotFoundError:
        return False
    return True


def main(arguments: Sequence[str] | None = None) -> None:
    """Check the options and the packages, and write the report."""
    parser = argparse.ArgumentParser(prog="gpu-report", description=__doc__)
    add = parser.add_argument
    add("--out", type=Path, default=Path("data/gpu-report"), help="folder of the report")
    add("--toy", action="store_true", help="at toy size, also on a CPU, to check that all works")
    add("--parts", nargs="+", metavar="PART", help="some parts, to add to the report: " + ", ".join(
        part.name for part in parts(Path())))  # fmt: skip
    add("--model", type=Path, help="model folder whose search to measure as well")
    add("--source", type=Path, help="text that it translates")
    options = parser.parse_args(arguments)
    if missing := list_missing():
        raise ValueError(f"expected these packages, too: pip install {' '.join(missing)}")
    import torch  # noqa: PLC0415  # says nothing of what else is missing

    if not options.toy and not torch.cuda.is_available():
        raise ValueError(
            f"expected a GPU, but PyTorch {torch.__version__} finds none (it is built for CUDA "
            f"{torch.version.cuda}). See whether nvidia-smi lists one; to try the report at toy size on the "
            "CPU, run make gpu-report TOY=1."
        )
    if (options.model is None) != (options.source is None):
        raise ValueError("expected both --model and --source, or neither.")
    given_model = [] if options.model is None else [f"--model={options.model}", f"--source={options.source}"]
    all_parts = parts(options.out, given_model)
    names = [part.name for part in all_parts]
    if unknown := set(options.parts or ()) - set(names):
        raise ValueError(f"expected parts of {', '.join(names)}, found {', '.join(sorted(unknown))}.")
    chosen = [part for part in all_parts if not options.parts or part.name in options.parts]
    options.out.mkdir(parents=True, exist_ok=True)
    is_added = bool(options.parts) and (options.out / "report.json").exists()
    write_report(options.out, chosen, is_toy=options.toy, is_added=is_added)
    print(f"\n{options.out / 'report.md'}")


if __name__ == "__main__":
    with report_errors("gpu-report", "", ""):
        main()

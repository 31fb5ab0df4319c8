"""What a GPU does with convs2s: `make gpu-report` writes report.md within 10 minutes.

It runs the tests that need a GPU, and updates of the paper's and of a small model with random data, plain and
with torch.compile; no network is needed. If a part fails or exceeds its time, the others still run, and the
report says so. On a machine without a GPU, --toy runs all parts at toy size on the CPU.
"""

import argparse
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

TESTS = ("tests/train/test_on_gpu.py", "tests/decode/test_on_gpu.py")
COMPILED = ("--variants", "plain", "compiled", "--precisions", "bfloat16")
TOY = shlex.split("--device cpu --tokens 50 --channels 8 --entries 40 --rounds 1 --updates 1")


def parts(toy: bool) -> dict[str, tuple[int, list[str]]]:
    """Return each part's title, with its seconds at most and its command."""
    tests = ["pytest", "-v", "-m", "gpu", "-p", "no:cacheprovider", *TESTS]
    size = TOY if toy else ("--device", "cuda", "--updates", "10", "--tokens", "4000", "16000")
    updates = ["benchmarks.train_step", *size]
    small = [*updates, "--presets", "multi30k-en-de"]
    return {
        "Tests that need a GPU": (240, ["pytest", "--version"] if toy else tests),
        "Updates": (120, [*(small if toy else updates), "--variants", "plain"]),
        "Updates with torch.compile": (240, [*small, *COMPILED]),
    }


def run(command: Sequence[str], seconds: int) -> str:
    """Run a module; return its output in Markdown, with the time and how it ended."""
    begin = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        output, _ = process.communicate(timeout=seconds)
        end = f"exit status {process.returncode}"
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
        end = "killed: its time was up"
    return f"{end}, {time.monotonic() - begin:.0f} s\n\n```\n{output.rstrip()}\n```"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all parts and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("data/gpu-report"), help="folder of the report")
    parser.add_argument("--toy", action="store_true", help="run at toy size, to check that it works")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    report = options.out / "report.md"
    report.write_text("# Report of a GPU\n", encoding="utf-8")
    for title, (seconds, command) in parts(options.toy).items():
        print(f"{title}: at most {seconds} s", flush=True)
        with report.open("a", encoding="utf-8") as stream:
            stream.write(f"\n## {title}\n\n`python -m {' '.join(command)}`: {run(command, seconds)}\n")
    print(report)


if __name__ == "__main__":
    main()

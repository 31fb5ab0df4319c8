"""Translate lines of pieces by greedy search, with only the exported files, onnxruntime and NumPy.

`convs2s export` copies this file next to the ONNX files; run it there: python translate.py < pieces.txt
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

FOLDER = Path(__file__).parent


def read(name: str) -> Any:
    """Return the content of a JSON file in this folder."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def part(name: str) -> Any:
    """Return an exported part, ready to run."""
    return onnxruntime.InferenceSession(FOLDER / f"{name}.onnx", providers=["CPUExecutionProvider"])


def translate(ids: list[int], encoder: Any, step: Any, facts: Any) -> list[int]:
    """Return the target ids for source ids, both without EOS."""
    end, longest = facts["ids"]["end"], min(2 * len(ids) + 10, facts["max_target_tokens"] or 10**9)
    encoded = encoder.run(None, {"source": np.array([[*ids, end]])})
    inputs = dict(zip(["keys", "values", "padding"], encoded, strict=True))
    windows = [np.zeros((1, 1, *shape[2:]), np.float32) for shape in facts["shapes"]["windows"]]
    written = [end]  # EOS also starts a translation
    while len(written) <= longest:
        inputs |= {"tokens": np.array([written[-1:]]), "position": np.array([len(written) - 1])}
        inputs |= {f"window_{i}": window for i, window in enumerate(windows)}
        needed = {entry.name: inputs[entry.name] for entry in step.get_inputs()}
        logits, _, *windows = step.run(None, needed)
        logits[..., facts["ids"]["padding"]] = -np.inf
        written.append(int(logits[0, 0].argmax()))
        if written[-1] == end:
            return written[1:-1]
    return written[1:]


def main() -> None:
    """Translate standard input to standard output."""
    facts, target, unknown = read("export"), read("target_vocabulary"), read("export")["ids"]["unknown"]
    known = {piece: i for i, piece in enumerate(read("source_vocabulary")) if i > unknown}
    encoder, step = part("encoder"), part("decoder_step")
    for line in sys.stdin:
        ids = [known.get(piece, unknown) for piece in line.split()]
        print(*(target[i] for i in translate(ids, encoder, step, facts)), flush=True)


if __name__ == "__main__":
    main()

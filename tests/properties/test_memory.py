"""Files of kilobytes that claim gigabytes: what they claim is compared with their size before it is read."""

import argparse
import io
import json
import resource
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from convs2s.fairseq.architecture import read_architecture
from convs2s.fairseq.files import read_fairseq_checkpoint
from convs2s.fairseq.importer import convert_model
from convs2s.ids.candidates import read_candidates
from convs2s.model.description import digest_of_content
from convs2s.model.storage import load_model
from tests.golden import FAIRSEQ_SIZES, PLAIN, tensors
from tests.package.small_package import write_small_package


def build(path: Path) -> None:
    """Read a checkpoint of fairseq, and make a model of it."""
    read = read_fairseq_checkpoint(path)
    convert_model(read, read_architecture(read), (FAIRSEQ_SIZES["source"], FAIRSEQ_SIZES["target"]))


ALLOWED = 100 << 20
"""Bytes beyond what the process has after its imports: less than any of the files claims."""
READERS: dict[str, Callable[[Path], Any]] = {
    ".npz": read_candidates,
    ".json": lambda path: load_model(path.parent),
    ".pt": build,
}


def write_arrays(path: Path, compression: int, entries: int, content: int) -> None:
    """Write an .npz file whose arrays claim so many entries and have so many bytes, all zero."""
    with zipfile.ZipFile(path, "w", compression, compresslevel=1) as archive:
        for name, dtype in (("offsets", "<i8"), ("targets", "<i4")):
            header = io.BytesIO()
            values = {"descr": dtype, "fortran_order": False, "shape": (entries,)}
            np.lib.format.write_array_header_1_0(header, values)
            with archive.open(f"{name}.npy", "w") as member:
                member.write(header.getvalue())
                for _ in range(0, content, 1 << 20):
                    member.write(bytes(min(content, 1 << 20)))


def write_model(path: Path) -> None:
    """Write a model folder that claims the largest model of all."""
    package = write_small_package(path.parent.parent)
    content = json.loads((package / "model.json").read_text(encoding="utf-8"))
    for side, kernel in (("encoder", 1023), ("decoder", 1024)):
        content["architecture"] |= {f"{side}_widths": [2**16] * 9, f"{side}_kernels": [kernel] * 9}
    content["architecture"] |= {"attention": [True] * 9, "max_positions": 2**24}
    content |= {"source_size": 2**31 - 1, "target_size": 2**31 - 1}
    content["sha256"] = digest_of_content(content)
    (package / "model.json").write_text(json.dumps(content), encoding="utf-8")


def write_checkpoint(path: Path, arguments: dict[str, Any], changes: dict[str, torch.Tensor]) -> None:
    """Write fairseq's plain model with other arguments and tensors."""
    content = {"args": argparse.Namespace(**PLAIN | arguments), "model": tensors("plain") | changes}
    torch.save(content, path)


def write_bomb(path: Path) -> None:
    """Write a checkpoint whose zeros are compressed."""
    write_checkpoint(path, {}, {"zeros": torch.zeros(1 << 25)})
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


FILES: dict[str, Callable[[Path], None]] = {
    "header.npz": lambda path: write_arrays(path, zipfile.ZIP_STORED, 1 << 40, 80),
    "bomb.npz": lambda path: write_arrays(path, zipfile.ZIP_DEFLATED, 1 << 24, 1 << 27),
    "package/model.json": write_model,
    "repeated.pt": lambda path: write_checkpoint(path, {}, {"one": torch.ones(1).expand(1 << 40)}),
    "outer_product.pt": lambda path: write_checkpoint(
        path,
        {},
        {"decoder.fc3.weight_g": torch.ones(60_000, 1), "decoder.fc3.weight_v": torch.ones(1, 60_000)},
    ),
    "layers.pt": lambda path: write_checkpoint(path, {"encoder_layers": f"'{'a' * 300_000}' * 1000"}, {}),
    "list.pt": lambda path: write_checkpoint(path, {"encoder_layers": f"[{'1,' * 150_000}] * 1000"}, {}),
    "bomb.pt": write_bomb,
}


def read_all(folder: Path) -> dict[str, str]:
    """Return the error of each file, while this process may take only a little more memory than it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + ALLOWED
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    errors = {}
    for name in FILES:
        try:
            READERS[Path(name).suffix](folder / name)
        except Exception as error:
            errors[name] = f"{type(error).__name__}: {error}"
    return errors


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Write the files and read them in another process."""
    folder = tmp_path_factory.mktemp("claims")
    for name, write in FILES.items():
        write(folder / name)
        assert (folder / name).stat().st_size < 10 << 20
    command = [sys.executable, "-m", "tests.properties.test_memory", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    errors: dict[str, str] = json.loads(done.stdout)
    return errors


@pytest.mark.parametrize("name", FILES)
def test_what_a_file_claims_takes_no_memory(name: str, errors: dict[str, str]) -> None:
    """The error names the file, and is not the lack of memory that reading it would cause."""
    assert errors[name].startswith("ValueError: ")
    assert Path(name).stem in errors[name] or "weights.safetensors" in errors[name]
    assert "allocate" not in errors[name]


if __name__ == "__main__":
    print(json.dumps(read_all(Path(sys.argv[1]))))

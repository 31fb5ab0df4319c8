"""Why a file cannot be read as a checkpoint, and what to do about it: one error per cause."""

import pickle
import re
import tarfile
import zipfile
from collections.abc import Collection
from pathlib import Path

from convs2s.exchange.pickle_names import Survey, survey

# Names that only show that a file has tensors and containers of them. They determine which name a message
# shows, not what is loaded: PyTorch decides that, name by name.
OF_TENSORS = re.compile(
    r"torch\.\w+Storage|torch\.storage\.\w+|torch\.(Size|Tensor|device|\w*int\d+|\w*float\d+|bool)"
    r"|torch\._utils\._rebuild_\w+|torch\._tensor\._rebuild_from_type_v2|torch\.nn\.parameter\.Parameter"
    r"|collections\.(OrderedDict|Counter)|_codecs\.encode|(__builtin__|builtins)\.(set|bytearray|complex)"
)
# Protocols 0 and 1 write every object with these.
OF_OBJECTS = {"copy_reg._reconstructor", "copyreg._reconstructor", "__builtin__.object", "builtins.object"}
PROTOCOL = 2  # of torch.save, and of PyTorch's weights-only loader
# In a file that predates the zip container of 2020: magic number, version, system, content, storage keys.
PICKLES = 5
FIRST_FORMAT = {"sys_info", "pickle", "tensors", "storages"}
SAVE_ANEW = (
    "If you trust the file, load it with the program that wrote it, and save only what is needed: "
    "torch.save({'args': argparse.Namespace(**arguments), 'model': state['model']}, 'clean.pt')."
)


def fault(path: Path, error: Exception, known: Collection[str]) -> ValueError:
    """Return an error that explains why PyTorch could not load a file.

    PyTorch's own advice, to load the file without protection, is left out.

    Args:
        path: of the file.
        error: raised by PyTorch.
        known: names of the accepted classes.
    """
    container = torchscript_fault(path) or tar_fault(path)
    if container:
        return ValueError(f"{path} {container}")
    if not isinstance(error, pickle.UnpicklingError):
        return damage(path, error)
    found = survey_file(path)
    blamed = re.findall(r"GLOBAL (\S+)", str(error))[:1]
    named = blamed + [name for name in found.names if not OF_TENSORS.fullmatch(name)]
    foreign = [name for name in named if name not in known and name not in OF_OBJECTS]
    if foreign:
        return refusal(path, foreign[0], known)
    if found.protocol in range(pickle.HIGHEST_PROTOCOL + 1) and found.protocol != PROTOCOL:
        return ValueError(
            f"{path} is pickled with protocol {'0 or 1' if found.protocol == 1 else found.protocol}; wanted "
            f"protocol {PROTOCOL}, the default of torch.save. {SAVE_ANEW}"
        )
    return refusal(path, blamed[0], known) if blamed else damage(path, error)


def refusal(path: Path, name: str, known: Collection[str]) -> ValueError:
    """Return the error that names an unknown class."""
    return ValueError(
        f"{path} contains an object of the class {name}, which is refused because a pickle can run any code; "
        f"nothing was executed. Wanted only tensors, plain values and the classes {', '.join(known)}. "
        f"{SAVE_ANEW}"
    )


def torchscript_fault(path: Path) -> str | None:
    """Return what is wrong with a TorchScript archive; None for any other file."""
    if not any(re.fullmatch(r"[^/]+/constants\.pkl", name) for name in zip_names(path)):
        return None
    return (
        "is a TorchScript archive, a program with its weights written by torch.jit.save; it was not "
        "executed. Wanted a checkpoint saved by fairseq in training, such as checkpoint_best.pt: give the "
        "checkpoint that the archive was made from."
    )


def tar_fault(path: Path) -> str | None:
    """Return what is wrong with a tar archive, compressed or not; None for any other file."""
    try:
        with tarfile.open(path) as archive:
            first = archive.next()
    except Exception:  # damaged archives also raise the decompressors' errors
        return None
    if first is None:
        return None
    if first.name in FIRST_FORMAT:
        return (
            "has PyTorch's first format, a tar archive, which cannot be read without executing its content; "
            f"nothing was executed. Wanted the format that torch.save has written since 2017. {SAVE_ANEW}"
        )
    return (
        f"is a tar archive that begins with {first.name!r}; wanted a checkpoint saved by fairseq. Unpack "
        f"the archive, tar -xf {path.name}, and give the checkpoint in it, such as model.pt."
    )


def zip_names(path: Path) -> list[str]:
    """Return the names of a zip file's members; none if it is damaged or not a zip file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except Exception:  # zipfile raises many kinds of errors on damaged files
        return []


def survey_file(path: Path) -> Survey:
    """Return the names in a file's pickles, in either of PyTorch's containers or a plain file."""
    names = [name for name in zip_names(path) if re.fullmatch(r"[^/]+/data\.pkl", name)]
    if not names:
        with path.open("rb") as stream:
            return survey(stream, PICKLES)
    try:
        with zipfile.ZipFile(path) as archive, archive.open(names[0]) as stream:
            return survey(stream, 1)
    except Exception:  # as above
        return Survey([], None)


def damage(path: Path, error: Exception) -> ValueError:
    """Return the error for a file that is not PyTorch's, or is damaged."""
    return ValueError(
        f"{path} cannot be read as a checkpoint: {reason(error)}. Wanted a whole file written by torch.save: "
        "is the download incomplete? Fetch it again."
    )


def reason(error: Exception) -> str:
    """Return PyTorch's reason on one line, without the advice around it."""
    if isinstance(error, EOFError):
        return "it ends early"
    if isinstance(error, MemoryError):
        return "it needs more memory than there is"
    text = " ".join(str(error).split())
    inner = re.search(r"WeightsUnpickler error: (.*?)(?: Check the documentation|$)", text)
    said = (inner[1] if inner else text)[:200].rstrip(".")
    return type(error).__name__ if not said or "weights_only" in said else f"{type(error).__name__}: {said}"

"""Presets: experiments/base.yaml has every key of params.yaml, a preset only the keys that differ from it."""

import difflib
from pathlib import Path
from types import MappingProxyType

from convs2s.config.load import parse_params
from convs2s.config.params import Params
from pipelines.preset.document import Block, Document, read_document
from pipelines.preset.overrides import Overrides, overridden, preset_command

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
NO_OVERRIDES: Overrides = MappingProxyType({})


def preset_names(experiments: Path = EXPERIMENTS) -> list[str]:
    """Return the names of all presets."""
    return sorted(path.stem for path in (experiments / "presets").glob("*.yaml"))


def preset_title(name: str, experiments: Path = EXPERIMENTS) -> str:
    """Return the first line of a preset's header."""
    header = read_preset(name, experiments).header
    return header[0].removeprefix("#").strip() if header else ""


def read_preset(name: str, experiments: Path = EXPERIMENTS) -> Document:
    """Read the file of a preset, which has only the keys that differ from the base.

    Raises:
        ValueError: if there is no such preset; the message suggests similar names. Or as `read_document`.
    """
    path = experiments / "presets" / f"{name}.yaml"
    known = preset_names(experiments)
    if name not in known:
        near = difflib.get_close_matches(Path(name).stem, known, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}?" if near else f"wanted one of {', '.join(known)}."
        raise ValueError(f"experiments/presets has no preset {name!r}; {hint}")
    return read_document(path, f"experiments/presets/{name}.yaml")


def render(name: str, experiments: Path = EXPERIMENTS, overrides: Overrides = NO_OVERRIDES) -> str:
    """Return the complete, validated params.yaml of a preset: the base, with the preset's lines for its keys.

    Args:
        overrides: values that replace the preset's.

    Raises:
        ValueError: if the preset has a key that the base lacks or an invalid value; the message names the
            preset's file and the key. Or as `read_preset` and `overridden`.
    """
    text, _ = render_and_check(name, experiments)
    text = text.replace(preset_command(name, {}), preset_command(name, overrides), 1)
    return overridden(text, overrides)[0] if overrides else text


def preset_params(name: str, experiments: Path = EXPERIMENTS) -> Params:
    """Return the parameters of a preset.

    Raises:
        ValueError: as `render`.
    """
    return render_and_check(name, experiments)[1]


def render_and_check(name: str, experiments: Path) -> tuple[str, Params]:
    """Return the text of a preset's params.yaml, and its values.

    Raises:
        ValueError: as `render`.
    """
    base = read_document(experiments / "base.yaml", "experiments/base.yaml")
    preset = read_preset(name, experiments)
    check_keys(preset, base)
    lines = [
        f"# Preset {name}, written by: {preset_command(name, {})}. Edit it freely.",
        "#",
        *preset.header,
        "",
    ]
    for key, block in base.blocks.items():
        lines += merged(block, preset.blocks.get(key))
    text = "\n".join(lines) + "\n"
    return text, parse_params(text, f"{preset.name}, completed from {base.name},")


def check_keys(preset: Document, base: Document) -> None:
    """Check that the base has every key of the preset.

    Raises:
        ValueError: if it lacks any; the message suggests similar keys.
    """
    faults = []
    for key in preset.blocks.keys() - base.blocks.keys():
        near = difflib.get_close_matches(key, base.blocks, n=1)
        faults.append(f"  {key}: unknown key" + (f"; did you mean {near[0]}?" if near else ""))
    if faults:
        raise ValueError(f"{preset.name} has keys that {base.name} lacks:\n" + "\n".join(sorted(faults)))


def merged(block: Block, other: Block | None) -> list[str]:
    """Return the preset's block if there is one, else the base's, with the base's blank lines above it."""
    chosen = other or block
    blank = [line for line in block.above if not line.strip()]
    return [*blank, *(line for line in chosen.above if line.strip()), *chosen.lines]

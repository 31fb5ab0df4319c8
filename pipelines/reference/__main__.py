"""Write the generated pages of docs/: `python -m pipelines.reference`, or `make reference`."""

from pathlib import Path

from convs2s.config.load import load_params, parse_yaml
from pipelines.reference import commands, parameters

ROOT = Path(__file__).parents[2]


def pages() -> dict[Path, str]:
    """Return the text of each page."""
    base = load_params(ROOT / "experiments" / "base.yaml")
    content = parse_yaml((ROOT / "dvc.yaml").read_text(encoding="utf-8"), "dvc.yaml")
    return {
        ROOT / "docs" / "all-parameters.md": parameters.page(base, content["stages"]),
        ROOT / "docs" / "commands.md": commands.page(),
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")

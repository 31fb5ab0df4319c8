"""Whatever the units of a translation memory, each segment is in one count, and no pair is a wrong one."""

import logging
import re
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from convs2s.text.sources.memory import read_memory

STATES = "", "final", "new", "needs-review-l10n", "x-mine"
QUALIFIERS = "", "exact-match", "mt-suggestion", "leveraged-mt", "x-other"
CONFIRMATIONS = "", "Draft", "Translated", "RejectedSignOff"
IDS = st.lists(st.sampled_from("abcd"), max_size=4)


def attribute(name: str, value: str) -> str:
    return f' {name}="{value}"' if value else ""


@st.composite
def divided_units(draw: st.DrawFn) -> tuple[str, int]:
    """Return a unit of XLIFF 1.2 with marked segments, in any order on each side, and their number."""
    sources, targets = draw(IDS), draw(st.none() | IDS)
    sides = {
        side: "".join(f'<mrk mtype="seg" mid="{mid}">{mid}</mrk>' for mid in mids)
        for side, mids in (("source", sources), ("target", targets or []))
    }
    status = attribute("state", draw(st.sampled_from(STATES)))
    status += attribute("state-qualifier", draw(st.sampled_from(QUALIFIERS)))
    target = "" if targets is None else f"<target{status}>{sides['target']}</target>"
    defined = "".join(
        f'<s:seg id="{mid}"{attribute("conf", draw(st.sampled_from(CONFIRMATIONS)))}/>'
        for mid in set(sources)
    )
    own = attribute("approved", draw(st.sampled_from(["", "yes", "no"])))
    own += attribute("translate", draw(st.sampled_from(["", "", "no"])))
    unit = (
        f"<trans-unit{own}><source>x</source><seg-source>{sides['source']}</seg-source>{target}"
        f"<s:seg-defs xmlns:s='s'>{defined}</s:seg-defs></trans-unit>"
    )
    every = {*sources, *(targets or [])}
    count = sum(max(sources.count(mid), (targets or []).count(mid)) for mid in every)
    return unit, max(count, 1)  # without any mark, a unit is a segment


@st.composite
def plain_units(draw: st.DrawFn) -> tuple[str, int]:
    """Return a unit of TMX, which is one segment, in some languages, once or more often."""
    codes = draw(st.lists(st.sampled_from(["en", "de", "en-US", "fr", ""]), max_size=3))
    texts = "".join(
        f"<tuv{attribute('xml:lang', code)}><seg>{draw(st.sampled_from(['b', '', '&#xD800;']))}</seg></tuv>"
        for code in codes
    )
    level = draw(st.sampled_from(CONFIRMATIONS))
    prop = f"<prop type='x-ConfirmationLevel'>{level}</prop>" if level else ""
    own = attribute("srclang", draw(st.sampled_from(["", "fr", "*all*"])))
    return f"<tu{own}>{prop}{texts}</tu>", 1


class Messages(logging.Handler):
    """Collects what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += record.getMessage()


def check(content: str, segments: int) -> None:
    """Read a memory, and compare the pairs and the counts with the number of its segments."""
    log = Messages()
    logger = logging.getLogger("convs2s.text.sources.notes")
    logger.addHandler(log)
    pairs: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "x"
        path.write_text(content)
        try:
            pairs.extend(read_memory(path, ("en", "de")))
        except ValueError as error:
            assert "expected segments in en and de" in str(error)
        finally:
            logger.removeHandler(log)
    assert all(source == target for source, target in pairs)
    kinds = re.findall(
        r"(left out )?segments (?!used)([^;]*?): (\d+), first", log.text.partition(" taken: ")[2]
    )
    left_out, doubted = (
        sum(int(count) for left, _, count in kinds if bool(left) == out) for out in (True, False)
    )
    assert left_out + len(pairs) == segments and doubted <= len(pairs)
    if log.text:
        assert f": {len(pairs)} of {segments} segment" in log.text


@given(st.lists(divided_units(), min_size=1, max_size=4))
def test_each_segment_of_a_divided_unit_is_in_one_count(units: list[tuple[str, int]]) -> None:
    """Sentences that are paired by their places would give wrong pairs that nobody sees."""
    texts, counts = zip(*units, strict=True)
    body = "\n".join(texts)
    head = "<xliff version='1.2'><file source-language='en' target-language='de'><body>"
    check(f"{head}{body}</body></file></xliff>", sum(counts))


@given(st.lists(plain_units(), min_size=1, max_size=4))
def test_each_segment_of_a_tmx_is_in_one_count(units: list[tuple[str, int]]) -> None:
    """What is missing in the counts was lost without a word."""
    texts, counts = zip(*units, strict=True)
    body = "\n".join(texts)
    check(f"<tmx version='1.4'><header/><body>{body}</body></tmx>", sum(counts))

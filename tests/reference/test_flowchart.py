"""The picture of the DAG on the site."""

import re
from xml.etree import ElementTree

from pipelines.reference.flowchart import svg

TEXT = "flowchart TD\n    read --> train-both\n    train-both --> score\n    read --> score\n"


def test_each_stage_is_a_box_and_each_arrow_leads_down() -> None:
    """Readers follow the arrows, so a stage must be below all that it uses, and within the picture."""
    picture = ElementTree.fromstring(svg(TEXT))
    _, _, width, height = map(float, picture.attrib["viewBox"].split())
    place = {text.text: (float(text.attrib["x"]), float(text.attrib["y"])) for text in picture.iter("text")}
    assert set(place) == {"read", "score", "train-both"}
    assert place["read"][1] < place["train-both"][1] < place["score"][1]
    arrows = [line.attrib["points"] for line in picture.iter("polyline")]
    ends = [[float(y) for y in re.findall(r",(-?\d+)", points)] for points in arrows]
    assert len(ends) == 3
    assert all(ys == sorted(ys) and ys[0] < ys[-1] for ys in ends)
    assert width > max(x for x, _ in place.values()) - min(x for x, _ in place.values())
    assert height > place["score"][1] - place["read"][1] + 28

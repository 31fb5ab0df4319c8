"""Tables of results, with values that can be checked by eye."""

import pandas as pd
import pytest

from convs2s.score.corpus_scores import bleu, chrf
from convs2s.score.tables import join_cells, length_table, spread


def test_scores_by_length_are_those_of_the_sentences_in_the_class() -> None:
    """Lengths 3 and 5 share a class; scores are means over systems, of which one has only errors."""
    system, references = ["a b c d e", "x", "a b c d z", "x"], ["a b c d e", "y", "a b c d e", "y"]
    table = length_table([3, 51, 5, 6], [system, ["x"] * 4], references)
    assert table["source_words"].tolist() == ["00-05", "06-10", "51+"]
    assert table["sentences"].tolist() == [2, 1, 1]
    short = [system[0], system[2]], [references[0], references[2]]
    assert table["bleu"][0] == pytest.approx(bleu(*short).value / 2, abs=0.005)
    assert table["chrf"].tolist() == pytest.approx([chrf(*short).value / 2, 0, 0], abs=0.005)


def test_examples_are_spread_over_the_whole_test_set() -> None:
    """Neighboring sentences often come from the same text, so each third contributes its middle one."""
    assert spread(range(9), 3) == [1, 4, 7]
    assert spread([5, 6], 5) == [5, 6]
    assert spread([], 5) == []
    assert spread(range(1000), 5) == [100, 300, 500, 700, 900]


def test_a_cell_is_one_cell() -> None:
    """A tab or a line end in a sentence adds no column or row, and quotes stay as they are."""
    table = pd.DataFrame({"line": [2], "source": ['say "a\tb"'], "hypothesis": ["ja\r"]})
    assert join_cells(table) == ["line\tsource\thypothesis", '2\tsay "a b"\tja ']

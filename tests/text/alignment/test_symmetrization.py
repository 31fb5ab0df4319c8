"""Links worked out by hand; atools gives the same ones."""

import numpy as np
import pytest

from convs2s.text.alignment.symmetrization import symmetrize

CASES = [
    ("both_agree", [0, 1], [0, 1], [(0, 0), (1, 1)]),
    ("nothing_linked", [-1, -1], [-1, -1, -1], []),
    # Source 1 has no backward link; forward (1, 1) touches (0, 0) and gives both words a first link.
    ("grows_along_the_diagonal", [0, 1], [0, -1], [(0, 0), (1, 1)]),
    # (0, 1) touches (0, 0) and target 1 is unlinked, though source 0 is linked: one of the two suffices.
    ("grows_to_a_second_word", [0, 0], [0], [(0, 0), (0, 1)]),
    # (2, 2) can be reached only after (1, 1) has been accepted.
    ("grows_in_steps", [0, 1, 2], [0, -1, -1], [(0, 0), (1, 1), (2, 2)]),
    # (1, 2) touches an accepted link only after (2, 2), which comes later: a second sweep takes it. Final
    # would not, because target 2 is linked by then.
    ("sweeps_again", [-1, -1, 2, 3], [-1, 2, -1, 3], [(1, 2), (2, 2), (3, 3)]),
    # (2, 2) touches nothing: final-and adds it because neither word has a link.
    ("final_adds_free_pairs", [0, -1, 2], [0, -1, -1], [(0, 0), (2, 2)]),
    # (0, 2) touches nothing and source 0 is linked: "and" leaves it out, plain "final" would not.
    ("final_needs_both_free", [0, -1, 0], [0, -1], [(0, 0)]),
    # Forward (2, 0), backward (0, 0) and (2, 2): nothing in common. Forward goes first and takes source
    # 2 and target 0; both backward links then lack a free word.
    ("final_takes_forward_first", [2, -1, -1], [0, -1, 2], [(2, 0)]),
    ("final_takes_backward_next", [1, -1, -1, -1], [-1, 2, -1, 3], [(1, 0), (3, 3)]),
]


@pytest.mark.parametrize(("forward", "backward", "wanted"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_links_are_those_of_grow_diag_final_and(
    forward: list[int], backward: list[int], wanted: list[tuple[int, int]]
) -> None:
    """Each case isolates one rule of Koehn et al. (2003) as atools applies it."""
    rows = np.empty((len(forward) + len(backward), 2), np.int32)
    count = symmetrize(np.array(forward, np.int32), np.array(backward, np.int32), rows)
    assert [(i, j) for i, j in rows[:count].tolist()] == wanted

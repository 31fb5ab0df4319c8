"""A sample of the pairs that the filter removes, for inspection."""

from dataclasses import dataclass, field
from typing import Any

SIZE = 5  # pairs per rule
LONGEST = 300  # characters per side


@dataclass
class RemovedSample:
    """For each rule, the removed pairs with the smallest hashes: a random sample, the same on every run."""

    pairs: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict)

    def add(self, rule: str, number: int, pair: tuple[str, str], words: tuple[int, int]) -> None:
        """Add a removed pair, unless the sample has enough pairs with smaller hashes.

        Args:
            number: hash of the pair.
            words: numbers of words in the source and the target.
        """
        found = self.pairs.setdefault(rule, {})
        if number in found or (len(found) == SIZE and number > max(found)):
            return
        source, target = (side[:LONGEST] for side in pair)
        found[number] = {
            "rule": rule,
            "source": source,
            "target": target,
            "source_words": words[0],
            "target_words": words[1],
        }
        if len(found) > SIZE:
            del found[max(found)]

    def rows(self) -> list[dict[str, Any]]:
        """Return the pairs of each rule, with sides cut after 300 characters."""
        return [found[number] for found in self.pairs.values() for number in sorted(found)]

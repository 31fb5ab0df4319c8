"""The stemmer of ROUGE-1.5.5: Porter's, after a lookup of irregular words.

It differs in three ways from rouge-score's default, Porter's stemmer with NLTK's extensions: it is Porter's
original, so "says" becomes "sai", not "say"; in its step 4, removing one suffix may expose another
(continental, continent, contin); and irregular words are replaced with their base. For the last, ROUGE-1.5.5
uses WordNet's lists; ours (`irregular_words`) leave out rare words.
"""

from nltk.stem.porter import PorterStemmer

from convs2s.score.irregular_words import base_of


class RougeStemmer(PorterStemmer):  # type: ignore[misc]  # NLTK has no types
    """Stems words of lower-case letters and digits."""

    def __init__(self) -> None:
        super().__init__(mode=PorterStemmer.MARTIN_EXTENSIONS)

    def stem(self, word: str) -> str:
        """Return the base of an irregular word, the stem of any other."""
        return base_of(word) or str(super().stem(word))

    def _step4(self, word: str) -> str:
        """Remove one suffix of step 4; unless that was -ion, then also remove -ment, and -ent or -ion."""

        def long(stem: str) -> bool:
            return bool(self._measure(stem) > 1)

        def long_before_ion(stem: str) -> bool:
            return long(stem) and stem.endswith(("s", "t"))

        stem = super()._step4(word)
        if not word.endswith("ion"):
            stem = self._apply_rule_list(stem, [("ment", "", long)])
            stem = self._apply_rule_list(stem, [("ent", "", long), ("ion", "", long_before_ion)])
        return str(stem)

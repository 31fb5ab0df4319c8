"""The words of the paper's presets do not change."""

import hashlib

import pytest

from convs2s.text.words.tokenization import Tokenizer
from tests.presets import params_of
from tests.text.words.test_tokenization import ODD_TEXTS

SAMPLE = [
    "L’école d’été coûte 10\u00a0000 € : « n’y en a-t-il pas\u202f? » L'eau, aujourd'hui !",
    "„Straßenbahn“, z.B. in Köln: 5\u00a0% von 1.000,50 km/h – um 6:51 Uhr (M&S)…",
    "He said “no,” and didn't: the dogs' 'quoted' $5.50 well-known e-mail @ 50%.",
    "Şi în ţară, într-un „an” de 3,5 % s-a dus — Moore's m².",
    "L'e\u0301te\u0301 de\u0301compose\u0301",
    *ODD_TEXTS,
]
# sha256 of words and detokenized words of the sample.
DIGESTS = {
    "ablation-en-de": "81ce727d5c3b3dd769716cb4c587c060e981f8d633378d78d19a9de3b6229812",
    "duc2004": "0f315b0ee2716b4ae66f700e06cc7b5f5442c5b8ab1b407f9fd6db4cc6924354",
    "gigaword": "0f315b0ee2716b4ae66f700e06cc7b5f5442c5b8ab1b407f9fd6db4cc6924354",
    "iwslt14-de-en": "33b731f71591162c9e1b1ed893cf5c7519cd1ce534a665712718755743aa768e",
    "multi30k-en-de": "9044fc061495dd9880c858fde88e150527801ee3a4236e5dcf7bdd8e7a77dec6",
    "multi30k-en-fr": "3b456cddce3f12ad82b90b9f1eeeb44c50d5a76b7da258f123e274dcfba012a2",
    "reuters-headlines": "306ca54b3ec613b23d7d2afab3d097ef5cc588d13b4f461c7c14c85249c67477",
    "tatoeba-en-de": "9044fc061495dd9880c858fde88e150527801ee3a4236e5dcf7bdd8e7a77dec6",
    "wmt14-en-de-fairseq": "090629aa3abf5e3d0f1c172a6450e5f9a8b008968cb28c7736700ff1764081d5",
    "wmt14-en-de-paper": "81ce727d5c3b3dd769716cb4c587c060e981f8d633378d78d19a9de3b6229812",
    "wmt14-en-fr-fairseq": "f9a962ebb6afa61188ba091afaf1d2f6e52fee4332ec284e6e299398cc1b8c52",
    "wmt14-en-fr-paper": "2172ca6aea86263c52541ccb5c49539d6689cff5139ca065a4a1a55781d7ccf0",
    "wmt14-en-fr-small": "2172ca6aea86263c52541ccb5c49539d6689cff5139ca065a4a1a55781d7ccf0",
    "wmt16-en-ro-bpe": "1b26a13cef278e2a700d0668bfdcd4a452564757c3cd6f751f1fc99d00a82a9e",
    "wmt16-en-ro-word": "1b26a13cef278e2a700d0668bfdcd4a452564757c3cd6f751f1fc99d00a82a9e",
}


@pytest.mark.parametrize("name", DIGESTS)
def test_words_and_texts_of_the_sample_stay_the_same(name: str) -> None:
    """Scores are comparable only if the text is prepared in the same way (T31)."""
    params = params_of(name)
    lines = []
    for language in params.languages:
        tokenizer = Tokenizer(language, params.tokenize)
        for text in SAMPLE:
            words = tokenizer.tokenize(text)
            lines += [" ".join(words), tokenizer.detokenize(words), tokenizer.reference(text)]
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest() == DIGESTS[name]

"""English names of languages, for model cards and the server, and a check of their codes."""

from collections.abc import Iterable, Iterator

NAMES = {
    "af": "Afrikaans", "am": "Amharic", "ar": "Arabic", "as": "Assamese", "az": "Azerbaijani",
    "be": "Belarusian", "bg": "Bulgarian", "bn": "Bengali", "bo": "Tibetan", "bs": "Bosnian",
    "ca": "Catalan", "cs": "Czech", "cy": "Welsh", "da": "Danish", "de": "German", "dz": "Dzongkha",
    "el": "Greek", "en": "English", "eo": "Esperanto", "es": "Spanish", "et": "Estonian", "eu": "Basque",
    "fa": "Persian", "fi": "Finnish", "fr": "French", "ga": "Irish", "gl": "Galician", "gu": "Gujarati",
    "ha": "Hausa", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "hy": "Armenian",
    "id": "Indonesian", "is": "Icelandic", "it": "Italian", "iu": "Inuktitut", "ja": "Japanese",
    "ka": "Georgian", "kk": "Kazakh", "km": "Khmer", "kn": "Kannada", "ko": "Korean", "ky": "Kyrgyz",
    "lo": "Lao", "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian", "ml": "Malayalam",
    "mn": "Mongolian", "mr": "Marathi", "ms": "Malay", "mt": "Maltese", "my": "Burmese",
    "nb": "Norwegian Bokmål", "ne": "Nepali", "nl": "Dutch", "no": "Norwegian", "or": "Odia",
    "pa": "Punjabi", "pl": "Polish", "ps": "Pashto", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian",
    "si": "Sinhala", "sk": "Slovak", "sl": "Slovenian", "so": "Somali", "sq": "Albanian", "sr": "Serbian",
    "sv": "Swedish", "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "tg": "Tajik", "th": "Thai",
    "tk": "Turkmen", "tl": "Tagalog", "tr": "Turkish", "ug": "Uyghur", "uk": "Ukrainian", "ur": "Urdu",
    "uz": "Uzbek", "vi": "Vietnamese", "xh": "Xhosa", "yo": "Yoruba", "yue": "Cantonese", "zh": "Chinese",
    "zu": "Zulu",
}  # fmt: skip


def language_name(code: str) -> str:
    """Return a language's name; for a code that is not listed, the code."""
    return NAMES.get(code, code)


def find_faults(codes: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each code that is not of ISO 639-1, or of ISO 639-3 where there is a shorter one.

    Other codes of three letters are not checked.
    """
    for code in codes:
        if code in NAMES:
            continue
        from nltk.langnames import iso639short  # noqa: PLC0415  # loading it takes most of a second

        if code in iso639short:
            yield f"language {code}: expected its short code, {iso639short[code]}, which has rules for words"
        elif len(code) == 2 and code not in iso639short.values():
            yield f"language {code}: expected an ISO 639 code, such as de; no language has this one"

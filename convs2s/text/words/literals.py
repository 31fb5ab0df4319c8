"""Literals: parts of a text that stay as they are, such as addresses and placeholders.

A model translates the text around a literal without seeing it, and no sentence ends in one. `LITERALS` has
the patterns of all kinds. They take linear time: a match begins only where what repeats in it does.
"""

import re
from collections.abc import Iterator
from html.entities import html5
from typing import NamedTuple

from convs2s.text.words.characters import SENTENCE_ENDS
from convs2s.text.words.tokenization import OBJECT

W = r"0-9A-Za-z_\u00c0-\u0dff"
"""Letters and digits of scripts with spaces; in others, a literal may stand beside a letter."""
ADDRESS = r"(?:[!#-'*-;=?-~\u00a1-\u00aa\u00ac-\u00ba\u00bc-\u0dff]|\([!#-'*-;=?-~\u00a1-\u0dff]*\))+"
ADDRESS_END = r"(?<![.,;:!?'’*_`\]}])"
SITE_ENDINGS = r"(?i:com|org|net|edu|gov|info)|co\.[a-z]{2}|de|fr|nl|ch|uk|eu|jp|cn|ru|pl|io|ai|tv|dev|app"
MAILBOX = r"(?<![A-Za-z0-9.+_-])(?i:mailto:)?[A-Za-z0-9.+_-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}"
FILE_ENDINGS = (
    "7z|avi|bash|bat|bin|bmp|bz2|cc|cfg|conf|cpp|cs|css|csv|dll|docx?|epub|exe|gif|gz|hpp|html?|ico|ini|"
    "ipynb|iso|jar|java|jpe?g|jsx?|jsonl?|log|md|mkv|mov|mp[34]|odt|ogg|pdf|php|png|pptx?|py|rar|rs|rst|rtf|sh|sql|srt|svg|"
    "tar|tex|tgz|tiff?|tmx|toml|tsv|tsx?|txt|wav|webp|xlsx?|xliff?|xlf|xml|ya?ml|zip"
)
ENTITIES = "|".join(name[:-1] for name, text in html5.items() if name.endswith(";") and not text.isalpha())
"""Names of characters in HTML that are no letters: `M&auml;dchen` is a word to those who wrote it."""
OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
DATE = rf"\d{{1,2}}\.\d{{1,2}}\.\d{{2,4}}(?![{W}]|\.[{W}])"
MILLIONS = rf"[1-9]\d{{0,2}}(?:\.\d{{3}}){{2,}}(?![{W}]|\.[{W}])"
"""A number such as 1.500.000, as many languages of Europe write it."""
TEXTS = "[^{}]*+"
for _ in range(4):
    TEXTS = rf"(?:[^{{}}]++|\{{{TEXTS}\}})*+"
"""The texts of an ICU message, with what is in braces in them."""
LABEL = (
    r"(?m:^)[ \t]*(?:[-*+][ \t]\[[ xX]\](?=[ \t])|"
    r"(?:[-–—*+•⁃‣◦]|--|#{1,6}|>{1,3})(?=[ \t])|[-–—](?=[^\W\d_])|"
    r"\(?(?:\d{1,2}[.)]{1,2}|[a-z][.)]|[A-Z]\)|[ivx]{2,5}[.)])(?=[ \t])|\d{3}[.)]{1,2}(?=[ \t]))"
)
"""What marks an item of a list, a heading, a quotation or a speech at the start of a line."""
LITERALS = {
    "labels": (LABEL,),
    "template code": (
        r"<\?(?:(?!<\?|\?>).)*\?>",  # <?php echo $x; ?>
        r"<%(?:(?!<%|%>).)*%>",  # <%= x %>
        r"\{%(?:(?!\{%|%\}).)*%\}",  # {% if x %}
        r"\{#(?:(?!\{#|#\}).)*#\}",  # {# x #}
        r"<!--(?:(?!<!--|-->).)*-->",
        # `ls -l`, but no quoted sentence
        rf"(?<![{W}`])`(?![\s`])(?:[^`\s]+|(?=[^`]*[^`\w\s,'.!?’“”„…–—])[^`]*)(?<![\s.!?])`(?![{W}`])",
    ),
    "tags": (
        r"</?\d+\s?/?>",  # <0>
        # <a href="x">, <user name>
        rf"</?[A-Za-z][{W}:.-]*(?:\s+[{W}:.-]+(?:=(?:\"[^\"<>]*\"|'[^'<>]*'|[^\s<>\"'=]+))?)*\s*/?>",
        # &nbsp;, but none within a word, and no escapes of Moses' tokenizer, which models know
        rf"(?<![{W};])(?:&(?!(?:amp|lt|gt|quot|apos|#39);)"
        rf"(?:{ENTITIES}|#\d{{1,7}}|#[xX][0-9a-fA-F]{{1,6}});)++(?![{W}])",
    ),
    "braces": (
        # {n, plural, one {# dog} other {# dogs}}, {d, date, short}
        rf"\{{\s*[{W}.]+\s*,\s*(?:plural|select(?:ordinal)?|choice|number|date|time)\s*(?:,{TEXTS})?\}}",
        r"\{{2,3}[^{}]*\}{2,3}",  # {{ user.name }}
        r"[$#%@]\{[^{}\s]*\}",  # ${x}
        r"\$\([A-Za-z_]*\)",  # $(x)
        r"\{\\[^{}]*\}",  # {\an8}
        rf"\{{[{W}]?[{W}.:!<>=^+%#,\[\]-]*\}}",  # {0:.2f}
    ),
    "addresses": (
        rf"(?<![{W}])[A-Za-z][A-Za-z0-9+.-]{{1,20}}://{ADDRESS}{ADDRESS_END}",
        rf"(?<![{W}])(?i:arxiv|doi|tel|urn):(?=[^\s\d]{{0,20}}\d){ADDRESS}{ADDRESS_END}",
        rf"(?<![{W}.])(?i:www)\.{ADDRESS}{ADDRESS_END}",
        rf"{MAILBOX}:(?:[{W}.~-]+/)+[{W}.~-]*[{W}~-]",  # git@example.org:tom/x.git
        rf"{MAILBOX}(?![{W}])",  # tom@example.org
    ),
    "mentions": (
        rf"(?<![{W}@/])@[A-Za-z0-9_-]+/[A-Za-z0-9_.-]*[A-Za-z0-9_]",  # @scope/package
        # @tom, @tom@mastodon.social
        rf"(?<![{W}@/])@[A-Za-z_][{W}]*(?:\.[{W}]+)*(?:@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)?",
    ),
    "hashtags": (r"(?<![\w&#/])#\w+",),
    "formulas": (
        # $x^2$, but no $5
        r"(?<![\w$\\])\$\$?(?:[A-Za-z]|(?=[^$]*[\\^_={])[^\s$][^$]*+)(?<=\S)\$\$?(?![\w$])",
        r"\\\((?:(?!\\[()]).)*\\\)",  # \(x\)
    ),
    "placeholders": (
        r"(?<!\d)\d{1,3}(?:[.,]\d{1,3})?%%|%%",  # 100%%
        r"%\d+\$[-+#0]{0,4}\d{0,3}(?:\.\d+)?[A-Za-z@]",  # %1$s
        rf"(?<![{W}%])%(?:L?\d{{1,2}}|n)(?![{W}%]|[.,]\d)",  # %1
        r"(?<![0-9%])%\([A-Za-z_]+\)[sdfr]",  # %(name)s
        r"(?<![0-9%])(?<!\d\s)%[-+#0]{0,4}\d{0,3}(?:\.\d+)?(?:hh?|ll?|[Lzjt])?"  # %-5.2f
        r"(?:[dfiu](?=[a-z]{0,2}(?![A-Za-z]))|[sxXeEgGcp@](?![A-Za-z]))",
        rf"(?<![{W}%])%[A-Za-z_][{W}.]*%",  # %PATH%
        rf"(?<![{W}:]):(?:[a-z_]|[+-]\d)[{W}+-]*:(?![{W}:])",  # :name:, :+1:
        # $HOME, $user_name, but no $millions
        rf"(?<![\w$])\$(?:(?=[A-Za-z0-9]*_)[A-Za-z_]\w*|[A-Z][A-Z0-9]+(?![{W}]))",
        r"\\[nrt](?![a-z])|\\u[0-9a-fA-F]{4}",  # \n
    ),
    "options": (
        # --output=FILE
        rf"(?<![^\s(\[\"'`])--[a-z][a-z0-9]+(?:-[a-z0-9]+)*(?:=[^\s=]*[{W}/])?(?![{W}-])",
        r"(?<=[^\s]\s)-[b-df-hj-np-xzB-DF-HJ-NP-Z](?![\w'’-])",  # -v, but neither -a nor -I
        rf"(?<![{W}=.-])[A-Za-z_][{W}.-]*=(?:\"[^\"]*\"|[^\s=\"',;]*[{W}/])(?!=)",  # KEY=value
    ),
    "commands of TeX": (
        # \alpha, \cite{x}
        rf"(?<![{W}\\])\\(?:(?![nrt])[A-Za-z]{{2,}}|[A-Za-z]{{2,}}(?=\{{))\*?(?:\{{[^{{}}\s]*\}})*",
    ),
    "footnotes": (
        rf"\[(?:\d{{1,3}}(?:\s?[,–-]\s?\d{{1,3}})*|\^[{W}-]+)\]",
        r"(?<=[^\s(\[])\[(?:[a-z]|[a-z]{1,5}\s?\d{1,3})\]",  # [a], [note 1]
    ),
    "paths": (
        # /etc/passwd, ~/bin/run
        rf"(?<![{W}.~/:<-])(?:~|\.{{1,2}}|/[{W}.@%+~-]*[{W}@%+~-])(?:/[{W}.@%+~-]*[{W}@%+~-])+/?",
        rf"(?<![{W}.~/:<-])~?/(?:[{W}.@%+~-]+/)+",  # /etc/
        # src/main.py
        rf"(?<![{W}./@%+~-])[{W}@%+~-][{W}.@%+~-]*(?:/[{W}.@%+~-]+)+\.(?:{FILE_ENDINGS})(?![{W}])",
        # C:\Program Files\Tom, \\server\share
        rf"(?<![{W}])(?:[A-Za-z]:\\|\\\\(?=[{W}]))(?:[{W}.$~()-]+(?: [{W}.$~()-]+){{0,2}}\\)*"
        rf"(?:[{W}.$~-]*[{W}$~-])?",
    ),
    "versions": (
        # 192.168.0.1:80, localhost:80
        rf"(?<![{W}.,/-])(?:{OCTET}(?:\.{OCTET}){{3}}|localhost(?=:\d))(?::\d+|/\d+)?(?![{W}])",
        rf"(?<![{W}.,/-])(?:[vV]\d+(?:\.\d+)*(?:\.x)?|\d+(?:\.\d+)*\.x|"  # v1.2.3-rc1, 2.x
        rf"(?!{DATE}|{MILLIONS})\d+(?:\.\d+){{2,}})"  # but no dates and numbers
        rf"(?:-?(?:alpha|beta|rc|dev|post|a|b)\.?\d*)?(?:\+[{W}.]*[{W}])?(?![{W}])",
    ),
    "dotted names": (
        rf"(?<![{W}.@/+-])[A-Za-z0-9-]{{2,}}(?:\.[A-Za-z0-9-]+)*\.(?:{SITE_ENDINGS})"  # booking.com
        rf"(?:/(?:{ADDRESS}{ADDRESS_END})?)?(?![{W}-]|\.[{W}])",
        # youtu.be/x
        rf"(?<![{W}.@/+-])[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[a-z]{{2,6}}/{ADDRESS}{ADDRESS_END}",
        # report.pdf, *.pdf
        rf"(?<![{W}./@+-])(?:[{W}+-]+(?:\.[{W}+-]+)*|\*?)\.(?:{FILE_ENDINGS})(?![{W}-]|\.[{W}])",
        # ASP.NET, OS.File
        rf"(?<![{W}.@/+-])(?:[A-Z][A-Z0-9]+(?:\.[A-Z][A-Za-z0-9]+)+|[A-Z][a-z]+(?:\.[A-Z]{{2,}})+)"
        rf"(?![{W}]|\.[{W}])",
        rf"(?<![{W}.@/+-])[A-Za-z][{W}]+(?:\.[a-z]+[A-Z][{W}]*)+",  # user.getName
        rf"(?<![{W}.@/+-])[A-Za-z][{W}]+(?:\.[A-Za-z_][{W}]+){{2,}}",  # java.util.List
        rf"(?<![{W}.@/+-])[A-Za-z_][{W}]*(?:\.[{W}]+)*\(\)",  # open()
        # std::map
        rf"(?<![{W}.@/+:-])[A-Za-z_][{W}]*::[A-Za-z_][{W}]*(?:(?:::|\.)[A-Za-z_][{W}]*)*(?:\(\))?",
        rf"(?<![{W}.])\.NET(?![{W}])",
    ),
    "names with underscores": (
        # user_name, my_list.append, USER_NAME, but no German Lehrer_in
        rf"(?<![{W}.@/+-])(?:[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?:\.[a-z_][a-z0-9_]*)*|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)"
        rf"(?![{W}])",
    ),
    "keys": (
        # 550e8400-e29b-41d4-a716-446655440000
        rf"(?<![{W}-])[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}(?![{W}-])",
        # 2024-05-12T10:30Z
        rf"(?<![{W}.,/-])\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
        rf"(?![{W}:-])",
        rf"(?<![{W}-])(?=\d*[a-f]\d*[a-f])(?=[a-f]*\d)[0-9a-f]{{8,}}(?![{W}-])",  # 9e107d9d372b
        rf"(?<![{W}])0x[0-9a-fA-F]+(?![{W}])",
        rf"(?<![{W}+])[A-Z][{W}]*(?:\+[A-Z0-9][{W}]*)+(?![{W}+])",  # Ctrl+C
        # DE89 3704 0044 0532 0130 00
        rf"(?<![{W}-])[A-Z]{{2}}\d\d(?=(?:[A-Z ]*\d){{8}})[ ]?[A-Z0-9]{{4}}"
        rf"(?:[ ]?(?=[A-Z]{{0,3}}\d)[A-Z0-9]{{4}}){{1,6}}(?:[ ]?\d{{1,4}})?(?![{W}])",
        # A1B2-C3D4, ISO-8859-1, ISO9001:2015
        rf"(?<![{W}.,/-])(?=[A-Z0-9-]{{6}})(?=[\d-]*[A-Z])(?=(?:[A-Z-]*\d){{4}})"
        rf"[A-Z0-9]+(?:-[A-Z0-9]+)*(?::\d{{4}})?(?![{W}-])",
    ),
    "numbers with a form": (
        # 555-123-4567
        rf"(?<![{W}.,/-])(?:\d+(?:-\d+){{2,}}(?:-[xX])?|\d{{3}}-\d{{4}}|\d{{8,}})(?![{W}-]|[.,]\d)",
        # +49 30 1234567, +1 (555) 123-4567; digits are taken whole, as there are 2^n ways to divide them
        rf"(?<![{W}+])\+(?=(?:[ ()/.-]{{0,2}}\d){{7}})\d++(?:[ /.-]?(?:\(\d+\)|\d++))*(?![{W}])",
        rf"(?<![{W}])\(\d{{2,5}}\)[ ]?\d{{3,}}(?:[ -]\d{{2,}})*(?![{W}-])",  # (555) 123-4567
        # 030 1234567
        rf"(?<![{W}.,/-])(?=0(?:[ /-]?\d){{6}})0\d{{1,4}}(?:[ /-]\d{{2,}})+(?![{W}-]|[.,]\d)",
        # 10:30:15, 2001:db8::1
        rf"(?<![{W}:.])(?=[a-fA-F:]*\d)[0-9a-fA-F]{{0,4}}(?::[0-9a-fA-F]{{0,4}}){{1,6}}:[0-9a-fA-F]{{1,4}}"
        rf"(?:/\d{{1,3}})?(?![{W}:])",
    ),
    "marks of emphasis": (  # **bold**
        r"(?<![\w*])(?:\*{1,3}|__|~~)(?=[^\s*_~])|(?<=[^\s*_~])(?:\*{1,3}|__|~~)(?![\w*])",
    ),
    "links of Markdown": (  # [a dog](dog.png)
        r"!?\[(?=[^\[\]]{0,200}\]\([^()\s])",
        r"\]\((?:[^()\s]|\([^()\s]*\))+(?:\s+\"[^\"]*\")?\)",
    ),
    "icons": (r"[\ue000-\uf8ff\U000f0000-\U0010fffd]+",),
    "smileys": (r"(?<!\S)(?:[:;=]['’-]?[()DPp|/\\*]|:-?[oO]|<3|xD|\^\^)(?=[\s.,!?]|\Z)",),
    "borders of table cells": (r"(?<!\S)\|(?:[ ]?:?-+:?[ ]?\|)*(?!\S)",),
    "words too long to be one": (r"(?<![!-~\u00a1-\u058f])[!-~\u00a1-\u058f]{100,}(?<![.,;:!?])",),
}
"""Regular expressions by kind; where several match at a place, the first counts."""
LINE = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
SIGN = re.compile(
    r"[\d<{%@#\[|\\$^/`_&(+*=>~•⁃‣◦\ue000-\uf8ff\U000f0000-\U0010fffd]|(?<=[.:;])\S|[ ]-|\t-|--|xD|"
    r"(?<!\S)\S{100}|(?m:^)\s*(?:[-–—]|[A-Za-z]{1,5}[.)])"
)
"""What every literal contains. Most lines have none of it, and are not searched for literals."""
LITERAL = re.compile("|".join(f"(?:{pattern})" for patterns in LITERALS.values() for pattern in patterns))
NO_PUNCTUATION = re.compile(rf"[\w\s{OBJECT}]")
LETTER = re.compile(rf"[{W}]")
CLOSING = re.compile(r"\*{1,3}|__|~~|\]\(.*")
"""A mark of Markdown that closes something where text is before it, and no word after it."""
NUMBERS = re.compile(r"[\W_]*\d[\W\d_]*")
"""A line of numbers alone, such as a date or a price."""


class Hidden(NamedTuple):
    """A literal, or an object of the text itself.

    Attributes:
        text: of the literal.
        left, right: the punctuation that touches it; empty if there is none.
        follows_letter: whether a letter of a script with spaces touches it on its left.
        closes: whether it is a mark of Markdown that ends emphasis or the text of a link.
    """

    text: str
    left: str = ""
    right: str = ""
    follows_letter: bool = False
    closes: bool = False


def find_literals(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each literal; none has a line end. A line of numbers alone is one."""
    for line in LINE.finditer(text):
        if NUMBERS.fullmatch(line[0]):
            yield line.end() - len(line[0].lstrip()), line.start() + len(line[0].rstrip())
        elif SIGN.search(line[0]):
            for match in LITERAL.finditer(text, *line.span()):
                yield match.span()


def hide_literals(text: str) -> tuple[str, list[Hidden]]:
    """Return a text with an `OBJECT` in place of each literal, and the text that each object replaces."""
    parts, hidden = list[str](), list[Hidden]()
    opened = set[str]()  # marks of Markdown in this line
    position = 0

    def add(part: str) -> None:
        parts.append(part)
        hidden.extend([Hidden(OBJECT)] * part.count(OBJECT))

    for start, end in find_literals(text):
        add(text[position:start])
        parts.append(OBJECT)
        left, right = text[max(position, start - 1) : start], text[end : end + 1]
        follows_text = bool(left.strip()) and not right.isalnum()
        mark = text[start:end]
        closes = False
        if "\n" in text[position:start]:
            opened.clear()
        if CLOSING.fullmatch(mark) is not None:
            closes = follows_text and (mark in opened or mark[0] == "]")
            if mark in opened:
                opened.remove(mark)
            elif right.strip():
                opened.add(mark)
        marks = [NO_PUNCTUATION.sub("", beside) for beside in (left, right)]
        hidden.append(Hidden(mark, marks[0], marks[1], LETTER.match(left) is not None, closes))
        position = end
    add(text[position:])
    return "".join(parts), hidden


def show_literals(text: str, hidden: Iterator[Hidden]) -> str:
    """Return a text in which each `OBJECT` is replaced by the next of what is hidden.

    A space between it and punctuation is left out where there was none, also if the period before it is the
    translation's own.
    """
    first, *rest = text.split(OBJECT)
    parts = [first]
    for part in rest:
        literal = next(hidden, Hidden(OBJECT))
        marks = SENTENCE_ENDS if literal.follows_letter else (literal.left,)
        touches = literal.closes or any(mark and parts[-1].endswith(mark + " ") for mark in marks)
        if touches and parts[-1].endswith(" "):
            parts[-1] = parts[-1][:-1]
        follows = literal.right and part.startswith(" " + literal.right)
        parts += [literal.text, part[1:] if follows else part]
    return "".join(parts)

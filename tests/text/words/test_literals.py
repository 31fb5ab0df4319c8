"""What is a literal, where it begins and ends, and what only looks like one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convs2s.text.words.literals import find_literals, hide_literals, show_literals
from convs2s.text.words.tokenization import OBJECT

LITERALS = [
    "<?php echo 'a. B'; ?>", "{% if x %}", "<%= user.name %>", "{# note #}",
    "<0>", "</0>", "<1/>", "<b>", "</b>", '<a href="x y">', "<br/>",
    "{count}", "{0}", "{}", "{{count}}", "{{ user.name }}", "{{{raw}}}", "${x}", "#{x}", "%{name}", "{\\an8}",
    "https://example.com/a?b=c&d=e", "https://en.wikipedia.org/wiki/Foo_(bar)", "www.example.org/x",
    "http://localhost:8080/", "HTTPS://EXAMPLE.ORG/A", "Www.Example.Org",
    "https://de.wikipedia.org/wiki/Köln", "tom.smith+x@mail.example.co.uk",
    "@tom", "@tom@mastodon.social", "@scope/package", "#hashtag", "#Köln_2024",
    "%s", "%1$s", "%d", "%@", "%(name)s", "%-5.2f", "%02d", "%PATH%", "%1", ":name:",
    "[1]", "[1, 2]", "[1-3]", "[^note]",
    "/etc/passwd", "~/bin/run", "./build.sh", "../src/main.py", "src/main.py", "docs/a/b.html",
    "C:\\Users\\Tom\\file.txt", "C:\\Program Files\\Tom", "\\\\server\\share",
    "v1.2.3", "v2", "1.2.3", "192.168.0.1", "2.0.0-rc1",
    "ASP.NET", ".NET", "OS.File", "Booking.Com", "amazon.de", "bbc.co.uk", "Node.js", "report.final.pdf",
    "System.IO.Path", "java.util.List", "foo.bar()", "myObject.getName",
    "`ls -l`", "&nbsp;", "&#8217;", "{0:.2f}", "{name!r:>10}", "git@example.org:tom/x.git", "$HOME",
    "$user_id",
    "\\n", "\\u00e9", "192.168.0.1:8080", "10.0.0.0/8", "user_name", "MAX_SIZE",
    "550e8400-e29b-41d4-a716-446655440000", "550E8400-E29B-41D4-A716-446655440000", "my_list.append",
    "12345678-1234-1234-1234-123456789012", "192.168.178.123", "10.0.19041.1",
    "9e107d9d372b", "619b2b4d", "\ue095", "\U000f0001\ue000",
    "{count, plural, one {# dog} other {# dogs}}", "{0, number}", "{d, date, short}", "{{n, number}}",
    "{g, select, male {He has {n, plural, one {# dog} other {{n} dogs}}} other {They have dogs}}",
    "%%", "100%%", "--help", "--dry-run", "--output=FILE", "KEY=value", 'name="Tom B"', "<user name>",
    "<input disabled>", "<!-- a note. -->", "s3://bucket/key", "doi:10.1000/xyz123", "tel:+4930123456",
    "$x$", "$x^2 + y^2 = z^2$", "$$a_i$$", "$a_i > 0$", "\\(x + 1\\)", "\\alpha", "\\textbf{bold}",
    "\\ref{fig:1}",
    "DE89 3704 0044 0532 0130 00", "DE89370400440532013000", "GB29 NWBK 6016 1331 9268 19",
    "+49 30 1234567", "+1 (555) 123-4567", "(555) 123-4567", "555-1234", "0800 123 456", "030/123456",
    "2024-05-12", "2024-05-12T10:30:00Z", "2024-05-12 10:30", "10:30:15", "978-3-16-148410-0", "1234567890",
    "2001:db8::1", "::1", "00:1A:2B:3C:4D:5E", "A1B2-C3D4-E5F6", "ISO-8859-1", "0xFF", "Ctrl+Shift+F4",
    "localhost:8080", "1.0.0+build.5", "2.x", "v1.x", ":+1:", "std::vector", "Foo::Bar.baz()", "*.txt",
    "youtu.be/abc", "#1", "ISO9001:2015",
    "a" * 1000, "aB3+/" * 50,
]  # fmt: skip
NO_LITERALS = [
    "100% sure", "50 % der", "20%ige", "tea.She", "I like tea.It is", "tea.it is", "Hello.World", "Mr.Smith",
    "1,000.That", "and/or", "he /she", "TCP/IP", "24/7", "km/h", "1/2/2024", "12.05.2024", "3.5", "10:30",
    "e.g. this", "a.m.", "z.B. das", "Ph.D.", "U.S. law", "U.S.A.", "i.e.", "C# and F#", "AT&T", "[sic]",
    "a < b and c > d", "{a b}", "x = {1, 2}", "[DOOR OPENS]", "foo:bar", "$5", "(a) b", "rock 'n' roll",
    "Word—word", "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen", "well...yes", "Wait…",
    "O`ahu and Hawai`i", "``so'' ``it''", "stone &amp; tile", "Q&As;", "Lehrer_in", "_very_ good",
    "$5", "US$ 5", "A$AP", "defaced", "2024", "1234567", "back\\slash", "a ` b ` c", "`Go home.`", "`my dog`",
    "`it’s my dog`", "5.000.000 Euro", "1.000.000.000", "1.234.567.890", "am 12.05.2024.",
    "fish&chips;", "Tom&Jerry;", "M&auml;dchen", "stra&szlig;", "Gr&uuml;&szlig;e", "don&#8217;t", "&Eacute;",
    "$millions", "$Millions", "20 %ig", "20 %ige", "100000e", "12345e6", "1000000e",
    "It costs $5 or $10", "$5 = 4€, $6", "he -- or she --", "a -a friend- b", "1939-1945", "U=", "C++", "A+",
    "MP3", "COVID-19", "the 1990s", "1,000.50", "-5 to +5", "{a, b}", "page [a]", "(10) 20", "10 000 000",
    "[Smith 2001]", "a <b", "Tom's", "x::", "Wait: no", "0 1 2 3 4 5 6 7 8",
    "これは長い文章です。" * 30, "ประเทศไทย" * 30,
]  # fmt: skip
PLACES = ["Open {} now.", "Open {}.", "({}) is it, or {}, yes", "{} is", "Is it {}? No: {}!"]


def list_literals(text: str) -> list[str]:
    return [text[start:end] for start, end in find_literals(text)]


@pytest.mark.parametrize("literal", LITERALS)
def test_a_literal_ends_before_the_punctuation_around_it(literal: str) -> None:
    """Else a period or a bracket would not be the sentence's."""
    for place in PLACES:
        if place.startswith("(") and len(literal) > 99:  # nothing says where such a word begins
            continue
        assert list_literals(place.replace("{}", literal)) == [literal] * place.count("{}"), place


@pytest.mark.parametrize(
    "sign",
    [
        "-",
        "*",
        "•",
        "--",
        "–",
        "1.",
        "12.)",
        "(3)",
        "a)",
        "b.",
        "iii.",
        "##",
        ">",
        "  -",
        "\t2.",
        "- [ ]",
        "* [x]",
    ],
)
def test_what_begins_a_line_of_a_list_is_one(sign: str) -> None:
    """Also the dash of someone who speaks, and the space before it, which is the depth of a list."""
    assert list_literals(f"{sign} Open it") == [sign]
    assert list_literals(f"Text\n{sign} Open it") == [sign]
    assert list_literals(f"Open {sign} it") == []


def test_numbers_alone_are_one() -> None:
    """A model that learned from sentences makes words of them."""
    assert list_literals(" 3.5 \n12.05.2024\n10:30 - 11:15\n(5)") == [
        "3.5",
        "12.05.2024",
        "10:30 - 11:15",
        "(5)",
    ]
    assert list_literals("5 dogs") == list_literals("...") == list_literals("½") == []


def test_options_footnotes_and_marks_of_markdown_are_known_by_what_is_before_or_after_them() -> None:
    """A dash at the start of a line is that of a list or of someone who speaks; [a] may be a word."""
    assert list_literals("Use -v (or --help).[a] See it.[note 2]") == ["-v", "--help", "[a]", "[note 2]"]
    assert list_literals("-I am. --but he") == ["-", "--but"]
    assert list_literals("**Note:** *it* (~~is~~). 2 * 3, f**k") == ["**", "**", "*", "*", "~~", "~~"]
    assert list_literals("See ![a dog](dog.png)! [a dog]") == ["![", "](dog.png)"]


def test_a_number_ends_before_the_next_sentence_or_word() -> None:
    """Digits after a period, and capitals after an account number, are not its own."""
    assert list_literals("Call +49 30 1234567. 5 dogs came.") == ["+49 30 1234567"]
    assert list_literals("BE68 5390 0754 7034 I PAID") == ["BE68 5390 0754 7034"]


def test_smileys_and_borders_stand_alone() -> None:
    """Within words or beside brackets they are punctuation."""
    assert list_literals("| Nice :) | Good ;-), yes <3 |") == ["|", ":)", "|", ";-)", "<3", "|"]
    assert list_literals("|---|:--:|") == ["|---|:--:|"]
    assert list_literals("(see a:) a|b I<3 f(x;)") == []


@pytest.mark.parametrize(
    "literal", ["https://example.com/a", "tom@example.com", "{count}", "%s", "v1.2", "OS.File"]
)
def test_letters_of_scripts_without_spaces_may_touch_it(literal: str) -> None:
    """In Japanese and Thai nothing else shows where an address ends."""
    assert list_literals(f"詳細は{literal}をご覧ください。") == [literal]
    assert list_literals(f"ดู{literal}ที่นี่") == [literal]


@pytest.mark.parametrize("text", NO_LITERALS)
def test_what_is_language_is_translated(text: str) -> None:
    """A literal too many stays in the source's language."""
    assert list_literals(f"Das ist {text} so") == []


@given(st.lists(st.sampled_from([*LITERALS[:-2], OBJECT, " ", "\n", "a", ".", "日", "(", "é"]), max_size=12))
def test_what_is_hidden_comes_back(parts: list[str]) -> None:
    """Byte for byte, the objects of the text itself included; and no literal goes over a line end."""
    text = "".join(parts)
    shown, hidden = hide_literals(text)
    assert shown.count(OBJECT) == len(hidden)
    assert show_literals(shown, iter(hidden)) == text
    assert not any("\n" in literal.text for literal in hidden)


def test_what_touched_a_word_touches_the_period_that_the_translation_has() -> None:
    """A mark of emphasis is none beside a space; in scripts without spaces any literal touches a word."""
    _, hidden = hide_literals("**Open**")
    assert show_literals(f"{OBJECT}Offen. {OBJECT}", iter(hidden)) == "**Offen.**"
    _, hidden = hide_literals("**Open?** [It!](#x)")
    shown = show_literals(f"{OBJECT}Offen. {OBJECT} {OBJECT}Es. {OBJECT}", iter(hidden))
    assert shown == "**Offen.** [Es.](#x)"
    _, hidden = hide_literals("他说：**“好”**。")
    assert show_literals(f"He said: {OBJECT}“Good. {OBJECT}”.", iter(hidden)) == "He said: **“Good.**”."
    _, hidden = hide_literals("* It costs (*$5*)\n* A*")
    shown = show_literals(f"{OBJECT} Das (kostet {OBJECT}5. {OBJECT})\n{OBJECT} A {OBJECT}", iter(hidden))
    assert shown == "* Das (kostet *5.*)\n* A *"
    _, hidden = hide_literals("(**It**)")
    assert show_literals(f"Es ist ({OBJECT}das{OBJECT})", iter(hidden)) == "Es ist (**das**)"
    assert show_literals(f"Es ist {OBJECT}das{OBJECT}", iter(hidden)) == "Es ist **das**"
    _, hidden = hide_literals("詳細は{count}")
    assert show_literals(f"Mehr. {OBJECT}", iter(hidden)) == "Mehr. {count}"

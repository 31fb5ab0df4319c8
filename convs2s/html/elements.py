"""Elements of HTML by what they are to a text: blocks, parts of a line, what stays as it is."""

# fmt: off
VOID = {
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen",
    "link", "meta", "param", "source", "track", "wbr",
}
"""Elements without content and end tag."""
RAW = {"iframe", "noembed", "noframes", "plaintext", "script", "style", "textarea", "xmp"}
"""Elements whose content has no tags; it ends at their end tag."""
KEPT_BLOCKS = {"listing", "plaintext", "pre", "xmp"}
"""Blocks that stay as they are: their layout is that of their characters, and most are code."""
BLOCKS = KEPT_BLOCKS | {
    # that browsers lay out as blocks (HTML standard, §15.3), or do not show as part of a line
    "address", "article", "aside", "blockquote", "body", "caption", "center", "col", "colgroup", "datalist",
    "dd", "details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form",
    "frame", "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hgroup", "hr", "html",
    "legend", "li", "main", "menu", "nav", "noscript", "ol", "optgroup", "option", "p", "search", "section",
    "select", "summary", "table", "tbody", "td", "template", "tfoot", "th", "thead", "title", "tr", "ul",
}
"""Elements at whose tags a text ends. All that are not listed are inline, also those that nobody knows."""
FLOW = {
    "address", "article", "aside", "blockquote", "center", "details", "dialog", "dir", "div", "dl",
    "fieldset", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "main", "menu",
    "nav", "ol", "p", "section", "ul",
}
"""Blocks that may be beside text, and that end no element but `<p>`."""
FOREIGN = {"math", "svg"}
"""Elements of other languages, in which `/>` ends an element."""
OBJECTS = FOREIGN | RAW - BLOCKS | {
    "audio", "canvas", "code", "embed", "img", "input", "kbd", "map", "meter", "object", "picture",
    "progress", "rp", "rt", "samp", "tt", "var", "video",
}
"""Inline elements that stay as they are, with their content."""
FORMATTING = {
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
}
"""Elements that browsers open again behind an end tag that they were badly nested with (§13.2.4.3)."""
IN_WORDS = FORMATTING - {"a"} | {"abbr", "bdi", "bdo", "del", "ins", "mark", "ruby", "rb", "sub", "sup"}
"""Elements that may be around a part of a word."""
REVISIONS = {"del", "ins"}
"""Elements of which one has what is no longer there, and the other what is there instead."""
RAISED = {"sub", "sup"}
"""Elements that stay as they are if they have no letters: exponents, numbers of footnotes."""
# fmt: on

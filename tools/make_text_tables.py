# SPDX-License-Identifier: Apache-2.0
"""Writes vitrail/text/tables/{html_entities,mojibake}.json, which vitrail/text/fix_text.h describes.

html_entities.json comes from Python's html.entities, mojibake.json from ftfy's regular expressions and codecs.  Run
from the repository root, with ftfy installed:

    python tools/make_text_tables.py
"""

import html
import html.entities
import json
import pathlib
import re._constants as sre
import re._parser as sre_parser

from ftfy import badness, chardata, fixes

OUTPUT = pathlib.Path("vitrail/text/tables")
LAST = 0x10FFFF
SPACES = [c for c in range(LAST + 1) if chr(c).isspace()]
WORD = "\\w"  # too many ranges for a table


def ranges(codes):
    """The code points as a string of pairs: first and last character of each range."""
    pairs = []
    for code in sorted(set(codes)):
        if pairs and code == pairs[-1][1] + 1:
            pairs[-1][1] = code
        else:
            pairs.append([code, code])
    return "".join(chr(code) for pair in pairs for code in pair)


def codes_of(item):
    """The code points that an item of a parsed character class matches."""
    kind, value = item
    if kind is sre.LITERAL:
        return [value]
    if kind is sre.RANGE:
        return range(value[0], value[1] + 1)
    assert item == (sre.CATEGORY, sre.CATEGORY_SPACE), item
    return SPACES


def set_of(item):
    """The ranges of an element of a pattern that matches one character."""
    kind, value = item
    if kind is sre.ANY:
        return ranges(set(range(LAST + 1)) - {ord("\n")})
    if kind is sre.IN and value == [(sre.CATEGORY, sre.CATEGORY_WORD)]:
        return WORD
    if kind is not sre.IN:
        return ranges(codes_of(item))
    negated = value[0][0] is sre.NEGATE
    codes = {code for part in value[negated:] for code in codes_of(part)}
    return ranges(set(range(LAST + 1)) - codes if negated else codes)


def sequences(items):
    """The sequences of sets that a parsed pattern without alternatives matches.  "^" is the beginning of the text."""
    results = [[]]
    for kind, value in items:
        if kind is sre.AT:
            assert value is sre.AT_BEGINNING
            options = [["^"]]
        elif kind is sre.MAX_REPEAT:
            low, high, inner = value
            options = [[set_of(inner[0])] * count for count in range(low, high + 1)]
        else:
            options = [[set_of((kind, value))]]
        results = [result + option for result in results for option in options]
    return results


def alternatives(pattern):
    """All sequences of an expression that is a list of alternatives, in their order."""
    parsed = list(sre_parser.parse(pattern.pattern, pattern.flags & ~(sre.SRE_FLAG_UNICODE)))
    if len(parsed) == 1 and parsed[0][0] is sre.BRANCH:
        return [sequence for branch in parsed[0][1][1] for sequence in sequences(branch)]
    return sequences(parsed)


def numbered(groups):
    """The sets of all sequences once, and the sequences as indices of sets."""
    sets = list(dict.fromkeys(part for group in groups.values() for sequence in group for part in sequence))
    index = {part: i for i, part in enumerate(sets)}
    return sets, {name: [[index[part] for part in sequence] for sequence in group] for name, group in groups.items()}


def mojibake():
    clues = chardata.UTF8_CLUES
    detector = {1: "first_of_2", 2: "first_of_3", 3: "first_of_4"}

    def clue(name):
        return set_of(list(sre_parser.parse(f"[{clues['utf8_' + name]}]"))[0])

    sets, patterns = numbered(
        {
            "bad": alternatives(badness.BADNESS_RE),
            "altered": alternatives(fixes.ALTERED_UTF8_RE),
            "lossy": alternatives(fixes.LOSSY_UTF8_RE),
            "utf8": [[clue(first)] + [clue("continuation")] * count for count, first in detector.items()],
            "continuation": [[clue("continuation_strict")]],
        }
    )
    upper = bytes(range(0x80, 0x100))
    return {
        "encodings": [[name, upper.decode(name)] for name in chardata.CHARMAP_ENCODINGS],
        "sets": sets,
        "patterns": patterns,
    }


def html_entities():
    names = html.entities.html5
    capitals = {name[1:-1]: text for name, text in chardata.HTML_ENTITIES.items() if name[1:] not in names}
    return {
        "names": {name[:-1]: text for name, text in names.items() if name.endswith(";")},
        "without_semicolon": [name for name in names if not name.endswith(";")],
        "capitals": capitals,
    }


def lines(table):
    """JSON in ASCII, whose lines have at most 120 characters if no element is longer."""
    result = [""]
    for part in json.dumps(table, separators=(",\0", ":")).split("\0"):
        if len(result[-1]) + len(part) > 120:
            result.append("")
        result[-1] += part
    return "\n".join(result) + "\n"


def main():
    OUTPUT.mkdir(exist_ok=True)
    for table in (html_entities, mojibake):
        (OUTPUT / f"{table.__name__}.json").write_text(lines(table()))


if __name__ == "__main__":
    main()

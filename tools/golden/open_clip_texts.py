# SPDX-License-Identifier: Apache-2.0
"""Texts that OpenCLIP cleans, and what it makes of them.

    open_clip_texts.py                         the fixture tests/fixtures/text/open_clip
    open_clip_texts.py --cases N --output DIR  the same with N drawn texts, and OpenCLIP's vocabulary

cleaned.json is a list of [text, lower, whitespace, canonicalize].  tokens.json is a list of [text, ids] of OpenCLIP's
tokenizer, in the fixture with the merges of tests/fixtures/text/clip.  To compare all texts of a folder:

    VITRAIL_OPEN_CLIP_TEXTS=DIR build/release/tests/text_tests --gtest_filter='OpenClipText*'
"""

import argparse
import gzip
import html.entities
import json
import pathlib
import random
import shutil
import unicodedata

from ftfy import chardata
from open_clip import tokenizer

FIXTURE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "text" / "open_clip"
WORDS = """a photo of the cat dog's can't we'll they've I'd it's café naïve Straße schön garçon niño œuvre Dvořák Łódź
Ærø Åland Œuvres château été ΣΊΣΥΦΟΣ ΟΔΟΣ Σ. ΑΣ.Α фотография кошки ёлка ІЇЄ 猫の写真 一张 고양이 사진 صورة חתול तस्वीर
รูปแมว İstanbul IĞDIR kırmızı 12345 3.14 50% $5 €10 £3 ½ x² µm 20°C ÅÄÖ voilà à la façon «oui» ¿qué? ¡no! — – … ·
<b>bold</b> <br/> <start_of_text> <end_of_text> <|endoftext|> <START_OF_TEXT> {label} great_white_shark #1 @home
🐈 👩‍👩‍👧 🇩🇪 ❤️ ☕ ✔ ™ © ® ¯\\_(ツ)_/¯ (╯°□°）╯ ÒwÓ Ã Â à á Ãla ß ẞ ſ 'ſ ﬅ ǅ ŉ ª º""".split()
QUOTES = "‘’‚‛“”„‟ʼ′″«»‹›`´"
FIRST_LIGATURES = "".join(map(chr, chardata.LIGATURES))
RANGES = [(0x20, 0x7F)] * 3 + [(0x80, 0xA0), (0xA0, 0x180), (0x180, 0x250), (0x2B0, 0x300), (0x300, 0x370)]
RANGES += [(0x370, 0x400), (0x400, 0x530), (0x590, 0x700), (0x900, 0xA00), (0x1E00, 0x2000), (0x2000, 0x2070)]
RANGES += [(0x20A0, 0x20C0), (0x2100, 0x2190), (0x2200, 0x2300), (0x2500, 0x2600), (0x3000, 0x3100), (0xAC00, 0xAD00)]
RANGES += [(0xFB00, 0xFB50), (0xFE00, 0xFE70), (0xFF00, 0x10000), (0x1D400, 0x1D500), (0x1F300, 0x1F650)]
CONTROLS = [chr(c) for c in (*range(0x20), *range(0x7F, 0xA0), 0xAD, 0xFEFF, 0xFFFD, *range(0x2028, 0x202F), 0x206A)]
NAMES = list(html.entities.html5)
ENCODINGS = [*chardata.CHARMAP_ENCODINGS, "windows-1252"]


def words(draw):
    text = draw.choice([" ", " ", "  ", ", ", ""]).join(draw.choice(WORDS) for _ in range(draw.randint(1, 8)))
    return draw.choice([str, str, str, str.upper, str.lower, str.title])(text)


def quotes(draw):
    quote = draw.choice
    return " ".join(quote(QUOTES) + draw.choice(WORDS) + quote(QUOTES) for _ in range(draw.randint(1, 4)))


def entity(draw):
    name = draw.choice(NAMES)
    number = draw.choice([draw.randrange(0x100), draw.randrange(0x3000), draw.randrange(0x120000)])
    forms = [f"&{name}", f"&{name.upper()}", f"&amp;{name}", f"&amp;amp;{name}", f"&{name.rstrip(';')}", "&amp", "&lt;"]
    forms += [f"&#{number};", f"&#x{number:x};", f"&#{number}", f"&#X{number:X}", f"&amp;#{number};", "&#;", "&#x;"]
    forms += [f"&{name.rstrip(';')}x;", "&#128512;", "&#55357;&#56832;", "&quot;", "&#39;", "&nbsp;", "&#59;", "&"]
    return draw.choice(forms)


def entities(draw):
    parts = [draw.choice([entity(draw), draw.choice(WORDS), "<", "\n"]) for _ in range(draw.randint(1, 8))]
    return draw.choice(["", " "]).join(parts)


def characters(draw):
    parts = []
    for _ in range(draw.randint(1, 16)):
        first, last = draw.choice(RANGES)
        parts.append(chr(draw.randrange(first, last)))
    return "".join(parts)


def ligatures(draw):
    return "".join(draw.choice([draw.choice(FIRST_LIGATURES), draw.choice(WORDS)]) for _ in range(draw.randint(1, 6)))


def widths(draw):
    text = "".join(chr(draw.randrange(0xFF00, 0xFFF0)) for _ in range(draw.randint(1, 12)))
    return draw.choice(["", "\u3000"]).join([text, words(draw)])


def controls(draw):
    parts = [draw.choice([draw.choice(CONTROLS), "\r\n", "\x1b[36;44m", "\x1b[0m", "\x1b[", draw.choice(WORDS)])]
    parts += [draw.choice([draw.choice(CONTROLS), draw.choice(WORDS), "\x1b[1m", " "]) for _ in range(8)]
    return "".join(parts)


def accents(draw):
    marks = [chr(c) for c in range(0x300, 0x330)]
    letters = "aeiounAEIOUNyzΑΣας"
    parts = [draw.choice([draw.choice(letters), draw.choice(marks), "&#769;"]) for _ in range(draw.randint(2, 12))]
    return "".join(parts)


def mojibake(draw):
    text = draw.choice([words, words, quotes, characters])(draw)
    for _ in range(draw.choice([1, 1, 1, 2])):
        data = text.encode()
        encoding = draw.choice(ENCODINGS)
        text = data.decode(encoding, errors=draw.choice(["ignore", "replace"]))
    if draw.random() < 0.3:
        text = text.replace("\xa0", " ")
    if draw.random() < 0.3:  # only a part of the text is damaged
        text = draw.choice([text + " " + words(draw), words(draw) + " " + text])
    return text


def surrogates(draw):
    """CESU-8 and Java's U+0000, read in another encoding."""
    data = draw.choice(["😀", "a😀b", "𝒥"]).encode("utf-16-be", "surrogatepass").decode("utf-16-be").encode("utf-16-be")
    units = [int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2)]
    cesu = b"".join(chr(unit).encode("utf-8", "surrogatepass") for unit in units) + draw.choice([b"", b"\xc0\x80"])
    return cesu.decode(draw.choice(["latin-1", "sloppy-windows-1252"])) + draw.choice(["", words(draw)])


STEPS = [words, quotes, entities, entities, characters, ligatures, widths, controls, accents, mojibake, mojibake]


def mixed(draw):
    return draw.choice(["", " ", "\n"]).join(draw.choice(STEPS)(draw) for _ in range(draw.randint(2, 4)))


def texts(count):
    draw = random.Random(50)
    made = ["", " ", "schÃ¶n", "it’s red", "cats &amp; dogs", "<b> &amp;amp; &amp;", "&amp;" * 3 + "amp;" * 5]
    while len(made) < count:
        text = draw.choice([*STEPS, surrogates, mixed, mixed])(draw)
        # Characters that are newer than a library's Unicode are letters to some and not to others.
        if not any(unicodedata.category(c) == "Cn" for c in tokenizer.basic_clean(text)):
            made.append(text)
    return made[:count]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=400)
    parser.add_argument("--output", type=pathlib.Path, default=FIXTURE)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    cleanings = [tokenizer.get_clean_fn(name) for name in ("lower", "whitespace", "canonicalize")]
    samples = texts(arguments.cases)
    cleaned = [[text, *(clean(text) for clean in cleanings)] for text in samples]
    lines = ",\n".join(json.dumps(row) for row in cleaned)
    (arguments.output / "cleaned.json").write_text(f"[\n{lines}\n]\n")
    vocabulary = pathlib.Path(tokenizer.default_bpe())
    merges = gzip.compress((FIXTURE.parent / "clip" / "merges.txt").read_bytes().rstrip(), mtime=0)
    if arguments.output == FIXTURE:
        (FIXTURE / vocabulary.name).write_bytes(merges)
        samples = samples[:130]  # a small file
    else:
        shutil.copy(vocabulary, arguments.output)
    simple = tokenizer.SimpleTokenizer(arguments.output / vocabulary.name)
    tokens = ",\n".join(json.dumps([text, simple.encode(text)]) for text in samples)
    (arguments.output / "tokens.json").write_text(f"[\n{tokens}\n]\n")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of CLIP, SigLIP and SigLIP 2, and the ids that they give for multilingual and random texts.

    text_tokenizers.py                           the fixtures tests/fixtures/text/{clip,gemma,siglip,unigram,xlm}
    text_tokenizers.py --cases N --output DIR    the same with N texts each, and clip_full with OpenCLIP's vocabulary

unigram and xlm are tokenizer.json as of T5 and XLM-R.  gemma_spm has a SentencePiece model alone, with Gemma's tokens.

There are no published vocabularies on PyPI but OpenCLIP's, so small ones are trained here.  cases.json is a list of
[text, ids] with the special tokens and without padding, at a context of 77 (CLIP) or 64.  To compare all texts:

    VITRAIL_TOKENIZER_CASES=DIR build/release/tests/text_tests --gtest_filter='*Reference'
"""

import argparse
import collections
import gzip
import io
import itertools
import json
import pathlib
import random
import shutil
import tempfile

import open_clip
import sentencepiece
import tokenizers
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "text"
CONTEXT = {"clip": 77, "gemma": 64, "siglip": 64, "unigram": 64, "xlm": 64}
SENTENCES = """a photo of a cat
a photo of two dogs playing in the snow, isn't it?
The quick brown fox jumps over the lazy dog.
an image of the number 12345: “seventeen”, 3.14 and 50%
we'll see what they've done; I'd say it's the dog's bone
Ein Foto von einer Straße in München
une photo d'un château à l'été, déjà vu
una foto de un niño en España ¿verdad?
фотография кошки на столе
Ο ΣΚΎΛΟΣ ΕΊΝΑΙ ΜΕΓΆΛΟΣ
一张猫的照片
猫の写真です。とてもかわいい
고양이 사진
صورة قطة صغيرة
תמונה של חתול
एक बिल्ली की तस्वीर
รูปแมว
İstanbul'da bir kedi, IĞDIR
🐈 a cat emoji 👩‍👩‍👧 and 🇩🇪 flags
low  spacing\tand\nnew lines\u3000here\u00a0too
e\u0301 cafe\u0301 ﬁ ligature Ａ fullwidth ½ ²
""".splitlines()
RANGES = [(0x20, 0x7F)] * 6 + [(0xA0, 0x180), (0x370, 0x400), (0x400, 0x530), (0x590, 0x700), (0x900, 0xA00)]
RANGES += [(0xE00, 0xE80), (0x1E00, 0x2000), (0x2000, 0x2070), (0x2150, 0x2190), (0x3000, 0x3100), (0x4E00, 0x5200)]
RANGES += [(0xAC00, 0xAD00), (0x300, 0x370), (0xFB00, 0xFB50), (0xFF00, 0xFFF0), (0x1F300, 0x1F650), (0x10400, 0x10450)]
PIECES = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "<|", "|>", " ", "  ", "\t", "\n", "▁", "'", "''", "...", "!?"]


def random_text(draw):
    kind = draw.random()
    if kind < 0.35:  # words of the sentences, shuffled, in another case
        words = [draw.choice(draw.choice(SENTENCES).split()) for _ in range(draw.randint(0, 20))]
        text = draw.choice([" ", "  ", ", "]).join(words)
        return draw.choice([str.upper, str.lower, str.title, str])(text)
    if kind < 0.45:
        return "".join(draw.choice(SENTENCES) for _ in range(draw.randint(3, 8)))  # longer than the context
    characters = []
    for _ in range(draw.randint(0, 40)):
        if draw.random() < 0.2:
            characters.append(draw.choice(PIECES))
        else:
            first, last = draw.choice(RANGES if kind < 0.8 else RANGES[:8])
            characters.append(chr(draw.randrange(first, last)))
    # U+09FE is a combining mark since Unicode 11; the NFC of `tokenizers` is older and does not reorder it.
    return "".join(c for c in "".join(characters) if c != "\u09fe")


def texts(count):
    draw = random.Random(30)
    made = ["", " ", "!!!", "a", "<|endoftext|>", "a <|startoftext|> b", "<|ENDOFTEXT|>!", *SENTENCES]
    while len(made) < count:
        made.append(random_text(draw))
    return made[:count]


def write(folder, name, tokenizer, samples, skip=()):
    samples = [text for text in samples if not any(token in text for token in skip)]
    context = CONTEXT[name.split("_")[0]]
    cases = []
    for first in range(0, len(samples), 1000):
        batch = samples[first : first + 1000]
        ids = tokenizer(batch, truncation=True, max_length=context, padding=False)["input_ids"]
        cases += [[text, numbers] for text, numbers in zip(batch, ids, strict=True)]
    (folder / "cases.json").write_text(json.dumps(cases, ensure_ascii=False) + "\n")
    print(name, len(cases), "texts")


def trained_merges(words, count, max_length=1000):
    """The most frequent pair first, and of equal ones the first in the alphabet: `tokenizers` takes any of them."""
    words, merges = [list(word) for word in words], []
    while len(merges) < count:
        pairs = collections.Counter(pair for word in words for pair in itertools.pairwise(word))
        pairs = {pair: n for pair, n in pairs.items() if len("".join(pair)) <= max_length}
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        for word in words:
            for i in range(len(word) - 1):
                if tuple(word[i : i + 2]) == best:
                    word[i : i + 2] = ["".join(best)]
    return merges


def clip(folder, samples):
    """A vocabulary in vocab.json and merges.txt: the 512 byte tokens, merges, two special tokens."""
    template = transformers.CLIPTokenizer().backend_tokenizer
    normalized = (template.normalizer.normalize_str(sentence) for sentence in SENTENCES)
    words = [word for text in normalized for word, _ in template.pre_tokenizer.pre_tokenize_str(text)]
    merges = trained_merges([[*word[:-1], word[-1] + "</w>"] for word in words], 244)
    symbols = list(open_clip.tokenizer.bytes_to_unicode().values())
    tokens = symbols + [symbol + "</w>" for symbol in symbols] + ["".join(pair) for pair in merges]
    tokens += ["<|startoftext|>", "<|endoftext|>"]
    vocab = {token: i for i, token in enumerate(dict.fromkeys(tokens))}
    (folder / "vocab.json").write_text(json.dumps(vocab, ensure_ascii=False))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
    tokenizer = transformers.CLIPTokenizer(vocab=vocab, merges=merges)
    write(folder, "clip", tokenizer, samples)
    return tokenizer


def clip_full(folder, samples):
    """OpenCLIP's vocabulary, which the package has, with transformers' tokenizer."""
    file = pathlib.Path(open_clip.tokenizer.default_bpe())
    shutil.copy(file, folder / file.name)
    lines = gzip.decompress(file.read_bytes()).decode().split("\n")[1 : 49152 - 256 - 2 + 1]
    merges = [tuple(line.split()) for line in lines]
    vocab = open_clip.SimpleTokenizer().encoder
    vocab = {
        {"<start_of_text>": "<|startoftext|>", "<end_of_text>": "<|endoftext|>"}.get(token, token): i
        for token, i in vocab.items()
    }
    write(folder, "clip_full", transformers.CLIPTokenizer(vocab=vocab, merges=merges), samples)


def gemma(folder, samples):
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    normalizer = transformers.Siglip2Tokenizer().backend_tokenizer.normalizer
    words = [normalizer.normalize_str(sentence) for sentence in SENTENCES[:12]]
    merges = trained_merges(words, 156, max_length=8)
    tokens = special + byte_tokens + sorted(set("".join(words))) + ["".join(pair) for pair in merges]
    vocab = {token: i for i, token in enumerate(dict.fromkeys(tokens))}
    tokenizer = transformers.Siglip2Tokenizer(vocab=vocab, merges=merges, padding_side="right")
    tokenizer.backend_tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A <eos>", special_tokens=[("<eos>", vocab["<eos>"])]
    )
    (folder / "tokenizer.json").write_text(tokenizer.backend_tokenizer.to_str())
    write(folder, "gemma", tokenizer, samples)


def trained_sentencepiece(**options):
    model = io.BytesIO()  # a model that is trained from files and to a file holds their paths
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 5),
        model_writer=model,
        hard_vocab_limit=False,
        character_coverage=0.98,
        **dict(vocab_size=300, pad_id=0, eos_id=1, unk_id=2, bos_id=-1, minloglevel=9) | options,
    )
    return model.getvalue()


def rules_of(folder):
    """The table of NFKC has 240 kB: fixtures have a small one."""
    if folder.parent != ROOT:
        return {"normalization_rule_name": "nmt_nfkc"}
    rules = {"ﬁ": "fi", "½": "1⁄2", "e\u0301": "é", "\t": " ", "\n": " ", "\u3000": " ", "\u00a0": " ", "…": "..."}
    rules |= {chr(0xFF21 + i): chr(0x41 + i) for i in range(26)}

    def code_points(text):
        return " ".join(f"{ord(c):X}" for c in text)

    with tempfile.NamedTemporaryFile("w", suffix=".tsv", delete=False) as file:
        file.writelines(f"{code_points(a)}\t{code_points(b)}\n" for a, b in rules.items())
    return {"normalization_rule_tsv": file.name}


def as_tokenizer_json(folder, model, tokenizer_class, **options):
    """The tokenizer.json that transformers makes of a SentencePiece model."""
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("spiece.model", "sentencepiece.bpe.model"):
            (pathlib.Path(scratch) / name).write_bytes(model)
        tokenizer = tokenizer_class.from_pretrained(scratch, **options)
    (folder / "tokenizer.json").write_text(tokenizer.backend_tokenizer.to_str())
    return tokenizer


def unigram(folder, samples):
    model = trained_sentencepiece(**rules_of(folder))
    write(folder, "unigram", as_tokenizer_json(folder, model, transformers.T5Tokenizer, extra_ids=0), samples)


def xlm(folder, samples):
    model = trained_sentencepiece(**rules_of(folder), bos_id=1, eos_id=2, unk_id=0, pad_id=-1)
    mask = transformers.AddedToken("<mask>", lstrip=True, normalized=False)  # as in the published files
    tokenizer = as_tokenizer_json(folder, model, transformers.XLMRobertaTokenizer, mask_token=mask)
    write(folder, "xlm", tokenizer, [text.replace("<|endoftext|>", " <mask>") for text in samples])


def gemma_spm(folder, samples):
    tokens = ["<start_of_turn>", "<end_of_turn>"]
    model = trained_sentencepiece(vocab_size=160, user_defined_symbols=tokens, normalization_rule_name="identity")
    (folder / "tokenizer.model").write_bytes(model)


def siglip(folder, samples):
    rule = "identity" if folder.parent == ROOT else "nmt_nfkc"
    (folder / "spiece.model").write_bytes(trained_sentencepiece(normalization_rule_name=rule))
    tokenizer = transformers.SiglipTokenizer(str(folder / "spiece.model"))
    write(folder, "siglip", tokenizer, samples, skip=("</s>", "<unk>"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT)
    arguments = parser.parse_args()
    samples = texts(arguments.cases)
    own = (gemma_spm,) if arguments.output == ROOT else (clip_full,)
    for make in (clip, gemma, siglip, unigram, xlm, *own):
        folder = arguments.output / make.__name__
        folder.mkdir(parents=True, exist_ok=True)
        make(folder, samples)


if __name__ == "__main__":
    main()

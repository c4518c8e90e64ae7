#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the words and the form of code, comments, documentation and commit subjects.

    tools/check_prose.py [PATH...]         the files below these paths, by default all that git knows or would add
    tools/check_prose.py --summary         the number of findings of each folder
    tools/check_prose.py --commits RANGE   the subjects of these commits
    tools/check_prose.py --message FILE    the subject of the commit message in FILE (a commit-msg hook)

Prints file:line: finding → what to write instead, and exits with 1 if there is a finding.  Checked are
- words that tools/prose_rules.toml refuses in identifiers, comments, string literals and documentation;
- comments that continue a sentence from the name beside or below them ("Of the last block.");
- lines of at most 120 characters in Markdown, shell, CMake and YAML files, but for tables, code blocks and long links;
- paragraphs of at most five lines in Markdown;
- commit subjects: at most 72 characters, imperative, without measurements.  "folder: " may stand in front.
"""

import argparse
import bisect
import collections
import io
import pathlib
import re
import subprocess
import sys
import tokenize
import tomllib

RULES = pathlib.Path(__file__).with_name("prose_rules.toml")
MAX_LINE = 120
MAX_PARAGRAPH = 5
MAX_SUBJECT = 72

CPP = {".h", ".hpp", ".cpp", ".cc", ".cu", ".cuh", ".inc", ".in"}
PYTHON = {".py"}
MARKDOWN = {".md"}
HASH = {".sh", ".cmake", ".txt", ".toml", ".yml", ".yaml"}  # and files that begin with #!: all of their text is checked

CPP_TOKENS = re.compile(
    r"(?P<comment>//[^\n]*(?:\n[ \t]*//[^\n]*)*|/\*.*?\*/)|"
    r'(?P<string>R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*")|'
    r"(?<!\w)'(?:\\.|[^'\\\n])+'",
    re.S,
)
COMMENT_MARKS = re.compile(r"(?:(?<=\n)|^)[ \t]*(?://+|#+|\*(?!/))")
WORD = re.compile(r"[A-Za-z_]\w*")
PARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
QUOTED = re.compile(r"`[^`\n]*`")

# The first words of a comment that is no sentence of its own.  The second group may begin a sentence, but then a comma
# separates its clause from the main one: "Where x is null, y is zero."
FRAGMENT = re.compile(
    r"(?:Of|By(?! default)|Which|Whose|Than)\b|(?:When|Where|As|If|That|And|Or|But)\b(?=[^,.;:]*(?:[.;:]|$))"
)
TRAILING_FRAGMENT = re.compile(r"(?:of|whose|which|than|and|or|but)\b")

Finding = collections.namedtuple("Finding", "line text advice")
Segment = collections.namedtuple("Segment", "kind start text")  # kind: comment, string or prose


class Rule:
    def __init__(self, pattern, advice, folders=()):
        self.pattern = re.sub(r"\((?!\?)", "(?:", pattern)  # the only groups are those that Matcher adds
        self.advice, self.folders = advice, tuple(folders)

    def is_for(self, path):
        return not self.folders or path.startswith(self.folders)


class Expression:
    """One regular expression of several rules, each of which must match between `before` and `after`."""

    def __init__(self, rules, before, after):
        self.rules, self.names = rules, {}
        one_of = "|".join(f"(?P<r{i}>{rule.pattern})" for i, rule in enumerate(rules)) or "(?!)"
        self.compiled = re.compile(f"{before}(?:{one_of}){after}", re.I)

    def find(self, text):
        """The matches, each with what to write instead."""
        return ((match, self.rules[int(match.lastgroup[1:])].advice) for match in self.compiled.finditer(text))

    def advice_for(self, name):
        """What to write instead of an identifier, or None."""
        if name not in self.names:
            snake = "_" + PARTS.sub("_", name).lower().strip("_") + "_"
            self.names[name] = next((advice for _, advice in self.find(snake)), None)
        return self.names[name]


class Matcher:
    """Gives each path the expression of the rules that are for it."""

    def __init__(self, rules, before, after):
        self.rules, self.before, self.after, self.expressions = [Rule(*rule) for rule in rules], before, after, {}

    def expression(self, path):
        chosen = tuple(rule for rule in self.rules if rule.is_for(path))
        if chosen not in self.expressions:
            self.expressions[chosen] = Expression(chosen, self.before, self.after)
        return self.expressions[chosen]


class Rules:
    def __init__(self, data):
        space = r"(?:[ \t]+|[ \t]*\n[ \t]*)"
        phrases = [[rule[0].replace(" ", space), *rule[1:]] for rule in data.get("phrases", ())]
        self.exclude = tuple(data.get("exclude", ()))
        self.identifiers = Matcher(data.get("identifiers", ()), "(?<=_)", "(?=_)")
        self.phrases = Matcher(phrases, r"\b(?<![-\w])(?=\w)", r"(?![-\w])")
        self.allowed = data.get("allow", ())
        self.used = set()  # of `allowed`, by index

    def allows(self, path, text):
        fitting = [i for i, a in enumerate(self.allowed) if path.startswith(a["path"]) and a["text"] == text]
        self.used.update(fitting)
        return bool(fitting)

    def unused(self):
        return [entry for i, entry in enumerate(self.allowed) if i not in self.used]


def blanked(text, pattern):
    """The text with what matches replaced by as many spaces; line breaks stay."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def cpp_segments(text):
    for match in CPP_TOKENS.finditer(text):
        if match.lastgroup and match.group("comment") is not None:
            yield Segment("comment", match.start(), match.group())
        elif match.group("string") is not None:
            yield Segment("string", match.start(), match.group())


def python_segments(text):
    starts = line_starts(text)
    comment = None  # consecutive comment lines are one segment
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        start = starts[token.start[0] - 1] + token.start[1]
        if token.type == tokenize.COMMENT:
            if comment is not None and not text[comment.start + len(comment.text) : start].strip():
                comment = comment._replace(text=text[comment.start : start + len(token.string)])
            else:
                if comment is not None:
                    yield comment
                comment = Segment("comment", start, token.string)
        elif token.type == tokenize.STRING or tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
            yield Segment("string", start, token.string)
    if comment is not None:
        yield comment


def line_starts(text):
    return [0] + [match.end() for match in re.finditer("\n", text)]


def segments_of(path, text):
    """The parts of a file that are prose."""
    suffix = pathlib.PurePosixPath(path).suffix
    if suffix in CPP:
        return list(cpp_segments(text))
    if suffix in PYTHON:
        return list(python_segments(text))
    return [Segment("prose", 0, text)]


def is_checked(path, text):
    suffix = pathlib.PurePosixPath(path).suffix
    return suffix in CPP | PYTHON | MARKDOWN | HASH or (suffix == "" and text.startswith("#!"))


def check_identifiers(rules, path, text, segments):
    """Compound identifiers wherever they are; single words in code, or in comments between back quotes."""
    prose = [(s.start, s.start + len(s.text)) for s in segments]
    ends = [end for _, end in prose]
    expression = rules.identifiers.expression(path)
    for match in WORD.finditer(text):
        name = match.group()
        advice = expression.advice_for(name)
        if advice is None:
            continue
        if "_" not in name and not PARTS.search(name):
            inside = bisect.bisect_right(ends, match.start())
            if inside < len(prose) and prose[inside][0] <= match.start() and not quoted(text, match):
                continue
        yield match.start(), name, advice


def quoted(text, match):
    line = text[text.rfind("\n", 0, match.start()) + 1 :].split("\n", 1)[0]
    column = match.start() - (text.rfind("\n", 0, match.start()) + 1)
    return any(q.start() < column < q.end() for q in QUOTED.finditer(line))


def check_phrases(rules, path, segments):
    expression = rules.phrases.expression(path)
    for segment in segments:
        text = blanked(segment.text, COMMENT_MARKS) if segment.kind == "comment" else segment.text
        for match, advice in expression.find(text):
            yield segment.start + match.start(), " ".join(match.group().split()), advice


def check_fragments(text, segments):
    for segment in segments:
        if segment.kind != "comment":
            continue
        own_line = not text[text.rfind("\n", 0, segment.start) + 1 : segment.start].strip()
        body = blanked(segment.text, COMMENT_MARKS)
        body = " ".join(re.sub(r"^(?://+|/\*+|#+)", "", body).split())
        match = (FRAGMENT if own_line else TRAILING_FRAGMENT).match(body)
        if match:
            beginning = " ".join(body.split()[:3])
            yield segment.start, f"comment begins “{beginning}”", "a sentence of its own, which names its subject"


def check_lines(path, text):
    in_code = False
    markdown = path.endswith(".md")
    for number, line in enumerate(text.splitlines(), 1):
        if markdown and line.lstrip().startswith("```"):
            in_code = not in_code
        table = markdown and line.lstrip().startswith("|")
        if len(line) > MAX_LINE and not in_code and not table:
            without_links = re.sub(r"https?://\S+|\]\([^)\s]*\)", "", line)
            if len(without_links) > MAX_LINE or without_links == line:
                yield number, f"{len(line)} characters", f"at most {MAX_LINE}"


def check_paragraphs(text):
    """Paragraphs of Markdown; a list's item is one, a heading, table or code block is none."""
    in_code, began, length = False, 0, 0

    def too_long():
        return [(began, f"paragraph of {length} lines", f"at most {MAX_PARAGRAPH}")] if length > MAX_PARAGRAPH else []

    for number, line in enumerate(text.splitlines() + [""], 1):
        fence = line.lstrip().startswith("```")
        none = in_code or fence or not line.strip() or re.match(r"\s*[|#<]", line)
        if fence:
            in_code = not in_code
        if none or re.match(r"\s*(?:[-*+]|\d+\.)\s", line):
            yield from too_long()
            began, length = number, 0 if none else 1
        else:
            began, length = (number, 1) if length == 0 else (began, length + 1)


def check_text(rules, path, text):
    """The findings of one file."""
    segments = segments_of(path, text)
    found = [(0, name, advice) for _, name, advice in check_identifiers(rules, path, path, [])]
    starts = line_starts(text)
    positions = list(check_identifiers(rules, path, text, segments)) + list(check_phrases(rules, path, segments))
    if pathlib.PurePosixPath(path).suffix in CPP | PYTHON:
        positions += check_fragments(text, segments)
    else:
        found += check_lines(path, text)
    found += [(bisect.bisect_right(starts, at), word, advice) for at, word, advice in positions]
    if path.endswith(".md"):
        found += check_paragraphs(text)
    return [Finding(*finding) for finding in sorted(set(found)) if not rules.allows(path, finding[1])]


# Commit subjects.
NO_VERBS = set(
    "a an the this that these those it its no not what which when where who whose each every all some any in on at by "
    "with without for from of to as and or but one two three both new our your my wip more less only".split()
)
ENDINGS = re.compile(r"\w+(?:ed|ing)$")
VERBS_IN_ED_ING = set("embed feed need seed speed shed exceed proceed succeed bring string ping spring bleed".split())
THIRD_PERSON = set(
    "adds fixes removes makes uses moves renames changes updates gives takes sets runs writes reads tells says allows "
    "checks drops keeps builds tests splits turns shows names replaces documents explains measures ran made wrote gave "
    "took kept said told did was is are were has had does".split()
)
NAME_WITH_FIGURE = re.compile(
    r"\bv?\d+\.\d+\.\d+\b|\b\d+-(?:bit|d|D)\b|\b(?:Debian|Zen|clang|gcc|g\+\+|CUDA|Python|CMake|NumPy|Ubuntu) \d[\d.]*|"
    r"(?<![\w.])[A-Za-z_][\w+]*(?:[-/.]?\w+)*"
)


def check_subject(subject):
    """What is wrong with a commit's subject, as (finding, what to write)."""
    if re.match(r"(?:Revert \"|Merge )", subject):
        return
    if len(subject) > MAX_SUBJECT:
        yield f"{len(subject)} characters", f"at most {MAX_SUBJECT}"
    if subject.endswith("."):
        yield "a full stop at the end", "none"
    rest = re.sub(r"^[\w/.-]+: ", "", subject)
    verb = (rest.split() or [""])[0].lower().strip(",:;")
    past = ENDINGS.match(verb) and verb not in VERBS_IN_ED_ING
    if past or verb in NO_VERBS or verb in THIRD_PERSON or not re.match(r"[a-z]", verb):
        yield f"“{verb}” is no imperative", "begin as in “Add …”, “Fix …”"
    figure = re.search(r"\d[\d.,]*(?:\s*%|\s?\w+)?", NAME_WITH_FIGURE.sub(" ", subject))
    if figure:
        yield f"the figure “{figure.group()}”", "measurements belong into the body or a generated table"


def git(*arguments):
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def check_commits(commits):
    bad = 0
    for line in git("log", "--no-merges", "--format=%h %s", commits).splitlines():
        commit, _, subject = line.partition(" ")
        for finding, advice in check_subject(subject):
            print(f"{commit}: {finding} → {advice}: {subject}")
            bad += 1
    return bad


def files_of(paths):
    listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *paths)
    return sorted(set(filter(None, listed.split("\0"))))


def check_tree(rules, paths, summary):
    by_folder = collections.Counter()
    for path in files_of(paths):
        file = pathlib.Path(path)
        if path.startswith(rules.exclude) or not file.is_file():
            continue
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # no text
        if not is_checked(path, text):
            continue
        found = check_text(rules, path, text)
        by_folder["/".join(path.split("/")[:-1][:2]) or "."] += len(found)
        if not summary:
            for line, word, advice in found:
                print(f"{path}:{line}: {word} → {advice}")
    if summary:
        for folder, count in sorted(by_folder.items()):
            print(f"{count:6d}  {folder}")
    unused = rules.unused() if paths == ["."] else []
    for entry in unused:
        print(f"{RULES.name}: nothing needs the allowed “{entry['text']}” in {entry['path']} → remove it")
    return sum(by_folder.values()) + len(unused)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", metavar="PATH")
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--commits", metavar="RANGE")
    parser.add_argument("--message", type=pathlib.Path, metavar="FILE")
    args = parser.parse_args()
    if args.commits:
        bad = check_commits(args.commits)
    elif args.message:
        lines = [line for line in args.message.read_text().splitlines() if not line.startswith("#")]
        found = list(check_subject(lines[0] if lines else ""))
        for finding, advice in found:
            print(f"commit message: {finding} → {advice}")
        bad = len(found)
    else:
        bad = check_tree(Rules(tomllib.loads(RULES.read_text())), args.paths or ["."], args.summary)
    print(f"prose: {bad} findings" if bad else "prose: clean", file=sys.stderr)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

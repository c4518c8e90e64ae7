# SPDX-License-Identifier: Apache-2.0
"""Completions and the manual page name what the help names, and the shells read them.   completion_test.py PROGRAM

A shell that is not installed is not tested.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else "vitrail"


def output(*arguments):
    return subprocess.run([PROGRAM, *arguments], check=True, capture_output=True, text=True).stdout


def commands():
    return re.findall(r"^  ([a-z]+) ", output("--help"), re.M)


def options(*command):
    lines = re.findall(r"^  (-\S+)", output(*command, "--help"), re.M)
    return {name for line in lines for name in line.split(",")}


def needs(*tools):
    missing = [tool for tool in tools if not shutil.which(tool)]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


def run(*command, text=""):
    return subprocess.run(command, input=text, check=True, capture_output=True, text=True, timeout=60)


class Texts(unittest.TestCase):
    def test_each_names_all_commands_and_options(self):
        self.assertIn("classify", commands())
        for kind in ("bash", "zsh", "fish", "man"):
            text = output("completion", kind).replace("\\-", "-")
            for command in commands():
                self.assertRegex(text, rf"\b{command}\b", kind)
                for option in options(command):
                    pattern = rf"-[sl] {option.lstrip('-')}\b" if kind == "fish" else rf"{option}\b"
                    self.assertRegex(text, pattern, f"{kind}: {command}")

    def test_hidden_commands_are_left_out(self):
        self.assertNotIn("completion", commands())


class Shells(unittest.TestCase):
    def file(self, kind):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        file = pathlib.Path(folder.name) / kind
        file.write_text(output("completion", kind))
        return file

    def bash_words(self, line):
        words = line.split(" ")
        script = f"""source {self.file("bash")}
            COMP_WORDS=({" ".join(f"'{word}'" for word in words)}); COMP_CWORD={len(words) - 1}
            _vitrail; printf '%s\\n' "${{COMPREPLY[@]}}" """
        return run("bash", "-c", script).stdout.split()

    def test_bash(self):
        self.assertEqual(self.bash_words("vitrail cla"), ["classify"])
        self.assertEqual(self.bash_words("vitrail classify --precision i"), ["int8"])
        self.assertEqual(self.bash_words("vitrail --threads 2 classify x.png --lo"), ["--logits"])
        self.assertEqual(self.bash_words("vitrail cache v"), ["verify"])
        self.assertEqual(self.bash_words("vitrail classify ph"), [])  # files, by bash itself
        self.assertEqual(set(self.bash_words("vitrail embed -")) - options("embed"), options() - options("embed"))

    @needs("zsh")
    def test_zsh(self):
        run("zsh", "-n", self.file("zsh"))
        load = "autoload -Uz compinit; compinit -D"
        script = f"{load}; source {self.file('zsh')} 2>/dev/null; print $+functions[_vitrail]"
        self.assertEqual(run("zsh", "-f", "-c", script).stdout.strip(), "1")

    @needs("fish")
    def test_fish(self):
        for line, want in (
            ("vitrail cla", "classify"),
            ("vitrail classify --logi", "--logits"),
            ("vitrail classify --precision i", "int8"),
        ):
            script = f"source {self.file('fish')}; complete -C '{line}'"
            words = [row.split("\t")[0] for row in run("fish", "--no-config", "-c", script).stdout.splitlines()]
            self.assertEqual(words, [want])

    @needs("groff")
    def test_the_manual_page_has_no_warnings(self):
        result = run("groff", "-man", "-ww", "-z", "-Tutf8", text=output("completion", "man"))
        self.assertEqual(result.stderr, "")


if __name__ == "__main__":
    unittest.main()

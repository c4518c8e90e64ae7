# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of a cell of peers.py alternately, so that a change of the machine's speed affects all of them."""

import itertools
import pathlib
import signal
import subprocess
import tempfile
import time


class Program:
    def __init__(self, command, folder):
        self.output, self.messages = folder / "output", folder / "messages"
        folder.mkdir()
        with self.output.open("w") as output, self.messages.open("w") as messages:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=messages)

    def running(self):
        return self.process.poll() is None

    def wait_until_ready(self, patience):
        """peer.py prints "ready" and waits for a line."""
        end = time.monotonic() + patience
        while self.running() and "ready" not in self.output.read_text().splitlines():
            if time.monotonic() > end:
                self.process.kill()
                self.messages.write_text(f"not ready after {patience:.0f} s")
            time.sleep(0.1)

    def result(self):
        """(status, standard output, standard error)"""
        self.process.stdin.close()
        return self.process.wait(), self.output.read_text(), self.messages.read_text()


def run(peers, others, seconds, patience):
    """{name: command} of runs of peer.py and of other programs → {name: result}.

    The peers are loaded one after the other.  Then each program measures for `seconds` while the others are stopped,
    repeatedly, until all have ended.
    """
    programs = {}
    with tempfile.TemporaryDirectory() as folder:
        folders = (pathlib.Path(folder) / str(i) for i in itertools.count())
        try:
            for name, command in peers.items():
                programs[name] = Program([*command, "wait"], next(folders))
                programs[name].wait_until_ready(patience)
            for program in programs.values():
                program.process.send_signal(signal.SIGSTOP)
                if program.running():
                    program.process.stdin.write(b"\n")
                    program.process.stdin.flush()
            for name, command in others.items():
                programs[name] = Program(command, next(folders))
                programs[name].process.send_signal(signal.SIGSTOP)
            alternate([program.process for program in programs.values()], seconds)
            return {name: program.result() for name, program in programs.items()}
        finally:
            for program in programs.values():
                program.process.kill()  # A stopped program does not notice an interruption.


def alternate(processes, seconds):
    while any(process.poll() is None for process in processes):
        for process in processes:
            process.send_signal(signal.SIGCONT)
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGSTOP)

# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of a cell of peers.py in turn, so that each meets the same speeds of a shared machine."""

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


def run(peers, others, turn, patience):
    """{name: command} of runs of peer.py and of other programs → {name: result}.

    The peers are loaded one after the other.  Then all programs begin to measure, but all except one are stopped.
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
            take_turns([program.process for program in programs.values()], turn)
            return {name: program.result() for name, program in programs.items()}
        finally:
            for program in programs.values():
                program.process.kill()  # after an interruption, which stopped programs do not notice


def take_turns(processes, turn):
    while any(process.poll() is None for process in processes):
        for process in processes:
            process.send_signal(signal.SIGCONT)
            try:
                process.wait(turn)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGSTOP)

# SPDX-License-Identifier: Apache-2.0
"""Runs `vitrail serve` for the checks with other programs."""

import pathlib
import signal
import subprocess


class Server:
    """`vitrail serve` on a free port, or where the arguments say."""

    def __init__(self, program, *arguments):
        port = [] if "--port" in arguments else ["--port", "0"]
        command = [program, "serve", *port, *arguments]
        self.process = subprocess.Popen([str(part) for part in command], stderr=subprocess.PIPE, text=True)
        line = next((line for line in self.process.stderr if "serving on" in line), None)
        if line is None:
            raise RuntimeError("the server did not start")
        self.url = line.split()[-1]

    def stop(self):
        """The exit status after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(120)
        self.process.stderr.close()
        return status


def small_model(repository):
    """The argument of -m for a model of 32×32 pixels and 10 classes."""
    return f"small={pathlib.Path(repository) / 'tests/fixtures/models/timm_token'}"


def run(*arguments, data=None):
    """The standard output of a program that must succeed."""
    return subprocess.run([str(a) for a in arguments], input=data, check=True, capture_output=True, timeout=60).stdout

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests that schemathesis makes from /openapi.json: no server error, and only the responses that it describes.

contract_check.py PROGRAM REPOSITORY [CASES of each route, by default 170: 2200 in all]
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

from serve_program import Server

PROGRAM, REPOSITORY = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
CASES = sys.argv[3] if len(sys.argv) > 3 else "170"
FIXTURES = REPOSITORY / "tests/fixtures"
MODELS = {
    "small": FIXTURES / "models/timm_token",
    "clip": FIXTURES / "models/hf_clip",
    "sam": FIXTURES / "sam/padded_windows/model.pth",
}
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def with_models(description):
    """The description with the names of the models, so that requests reach more than the error for an unknown one."""
    for path in description["paths"].values():
        for operation in path.values():
            for parameter in operation.get("parameters", []):
                if parameter["name"] == "model":
                    parameter["schema"] = {"enum": list(MODELS)}
    return description


def main():
    models = [argument for name, path in MODELS.items() for argument in ("-m", f"{name}={path}")]
    server = Server(PROGRAM, *models)
    with tempfile.TemporaryDirectory(prefix="vitrail-contract-") as folder:
        file = pathlib.Path(folder) / "openapi.json"
        with urllib.request.urlopen(server.url + "/openapi.json") as response:
            file.write_text(json.dumps(with_models(json.load(response))))
        command = [pathlib.Path(sys.executable).parent / "schemathesis", "run", file, "--url", server.url]
        command += ["--checks", CHECKS, "--phases", "fuzzing", "--max-examples", CASES]
        command += ["--request-timeout", "60", "--seed", "1"]
        status = subprocess.run([str(part) for part in command], cwd=folder).returncode
    ended = server.stop()
    if ended != 0:
        print(f"contract_check: the server ended with status {ended}", file=sys.stderr)
    sys.exit(status or ended)


main()

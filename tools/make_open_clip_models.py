# SPDX-License-Identifier: Apache-2.0
"""Writes vitrail/models/families/open_clip_models.json: the files of OpenCLIP's model_configs/, by their names.

Run from the repository root, with open_clip_torch installed:

    python tools/make_open_clip_models.py
"""

import importlib.metadata
import json
import pathlib

OUTPUT = pathlib.Path("vitrail/models/families/open_clip_models.json")


def main():
    files = [file for file in importlib.metadata.files("open_clip_torch") if file.parent.name == "model_configs"]
    models = {file.stem: json.loads(file.read_text()) for file in sorted(files, key=lambda file: file.name)}
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(config)}" for name, config in models.items())
    OUTPUT.write_text(f"{{\n{rows}\n}}\n")


if __name__ == "__main__":
    main()

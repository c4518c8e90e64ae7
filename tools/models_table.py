# SPDX-License-Identifier: Apache-2.0
"""Tries timm's pretrained tags and OpenCLIP's configurations with vitrail and writes the table of docs/models.md.

For each tag of timm's plain Vision Transformers, a folder as on the hub is written: config.json with the name, and a
file of zeros with the names and shapes of timm's state dict at depth 2.  vitrail must load it; a missing, unexpected or
misshapen tensor is a failure.  The same is done with the image towers of OpenCLIP's configurations.  Nothing is
downloaded.

  python tools/models_table.py [--program build/release/vitrail] [--check]
"""

import argparse
import collections
import functools
import json
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
from unittest import mock

import open_clip
import timm
import torch

PAGE = pathlib.Path("docs/models.md")
BEGIN, END = "<!-- begin: tools/models_table.py -->", "<!-- end -->"
MODULES = ("vision_transformer", "deit", "eva", "beit")
FAMILIES = (  # the first whose pattern is in the name
    ("EVA-02", r"^eva02"),
    ("EVA", r"^eva_"),
    ("BEiT, BEiTv2", r"^beit(v2)?_"),
    ("BEiT-3", r"^beit3"),
    ("AIMv2", r"^aimv2"),
    ("DeiT III", r"^deit3"),
    ("DeiT", r"^deit"),
    ("DINOv3", r"dinov3"),
    ("DINOv2", r"dinov2"),
    ("SigLIP, SigLIP 2", r"siglip"),
    ("Perception Encoder", r"_pe_"),
    ("ViT with RoPE", r"rope"),
    ("CLIP", r"_clip"),
    ("RADIO", r"radio"),
    ("TIPSv2", r"tipsv2"),
    ("FlexiViT", r"^flexivit"),
    ("ViT with registers or average pooling", r"gap|_reg\d|_map"),
    ("ViT", r""),
)
DEPTH = 2


def write_zeros(path, state):
    """A sparse safetensors file: the header, and zeros that take no space."""
    header, at = {}, 0
    for name, tensor in state.items():
        size = 4 * math.prod(tensor.shape)
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)


def load(program, config_name, config, state):
    """What vitrail says against a folder with the configuration and zeros; empty if it loads."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / config_name).write_text(json.dumps(config))
        write_zeros(folder / "model.safetensors", state)
        command = [program, "inspect", "-m", folder, "--slice", "patch_embed.proj.weight[0, 0, 0, :2]"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stderr.strip().replace(name, "FOLDER") if result.returncode else ""


def try_tag(program, tag):
    """What vitrail says against the model; empty if it loads."""
    try:
        with torch.device("meta"):
            model = timm.create_model(tag, depth=DEPTH)
    except AssertionError as error:  # options per block, which vitrail does not have
        return f"timm: {error}"
    cfg = model.pretrained_cfg
    config = {
        "architecture": tag.split(".")[0],
        "num_classes": model.num_classes,
        "pretrained_cfg": {"tag": tag.split(".", 1)[1], "input_size": cfg["input_size"]},
        "model_args": {"depth": DEPTH},
    }
    return load(program, "config.json", config, model.state_dict())


def open_clip_names():
    """The configurations whose image tower is a Vision Transformer, OpenCLIP's own or one of timm's."""
    of_timm = {name for module in MODULES for name in timm.list_models(module=module)}
    for name in open_clip.list_models():
        vision = open_clip.get_model_config(name)["vision_cfg"]
        trunk = vision.get("timm_model_name")
        if trunk in of_timm if trunk else isinstance(vision["layers"], int):
            yield name


def try_open_clip(program, name):
    config = open_clip.get_model_config(name)
    vision = config["vision_cfg"]
    own = {} if "timm_model_name" in vision else {"layers": DEPTH}
    small = functools.partial(timm.create_model, depth=DEPTH)
    with torch.device("meta"), mock.patch("open_clip.timm_model.timm.create_model", small):
        tower = open_clip.model._build_vision_tower(config["embed_dim"], vision | own)
    config["vision_cfg"] = vision | (own or {"vitrail_args": {"depth": DEPTH}})
    state = {"visual." + key: value for key, value in tower.state_dict().items()}
    return load(program, "open_clip_config.json", {"model_cfg": config}, state)


def family_of(tag):
    return next(name for name, pattern in FAMILIES if re.search(pattern, tag))


def pattern_of(tag):
    """The name with * for its sizes: vit_*_siglip."""
    sizes = r"(x?small|tiny|base|large|huge|gigantic|giantopt|giant|medium[d]?|so\d+m|betwixt|\d+b)(_plus)?"
    name = re.sub(rf"_({sizes}_)?(patch\d+)(?=_)", "_*", tag.split(".")[0])
    return re.sub(r"(_qkvb)?(_\d+)?$", "", name)


def open_clip_text(names, errors):
    loaded = len(names) - len(errors)
    text = f"The image towers of `{loaded}` of the {len(names)} configurations of OpenCLIP {open_clip.__version__}"
    text += " with a Vision Transformer load."
    return text + (" Not supported: " + ", ".join(f"`{name}`" for name in sorted(errors)) + "." if errors else "")


def table(tags, errors):
    counts = collections.defaultdict(lambda: [0, 0, ""])
    for tag in tags:
        row = counts[family_of(tag)]
        row[0] += tag not in errors
        row[1] += 1
        row[2] = row[2] or (tag if tag not in errors else "")
    lines = [
        f"`{len(tags) - len(errors)}` of the {len(tags)} pretrained tags of timm {timm.__version__} in "
        + ", ".join(f"`{module}`" for module in MODULES)
        + " load.",
        "",
        "| family | load | for example |",
        "| --- | ---: | --- |",
    ]
    for family, _ in sorted(FAMILIES):
        loaded, total, example = counts[family]
        if total:
            lines.append(f"| {family} | {loaded}/{total} | {f'`{example}`' if example else '–'} |")
    missing = sorted({pattern_of(tag) for tag in errors})
    if missing:
        lines += ["", "Not supported: " + ", ".join(f"`{name}`" for name in missing) + "."]
    return "\n".join(lines)


def wrapped(text, width=120):
    """Breaks long lines of text at spaces; rows of tables stay."""
    lines = []
    for line in text.split("\n"):
        while len(line) > width and not line.startswith("|"):
            cut = line.rindex(" ", 0, width)
            lines.append(line[:cut])
            line = line[cut + 1 :]
        lines.append(line)
    return "\n".join(lines)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--program", default="build/release/vitrail")
    arguments.add_argument("--check", action="store_true", help="only report a page that is out of date")
    options = arguments.parse_args()
    tags = [tag for module in MODULES for tag in timm.list_models(module=module, pretrained=True, include_tags=True)]
    errors = {tag: error for tag in tags if (error := try_tag(options.program, tag))}
    names = list(open_clip_names())
    open_clip_errors = {name: error for name in names if (error := try_open_clip(options.program, name))}
    for tried, failures in ((tags, errors), (names, open_clip_errors)):
        for name, error in failures.items():
            print(f"{name}: {error.splitlines()[0][:200]}")
        print(f"{len(tried) - len(failures)} of {len(tried)} load")
    page = PAGE.read_text()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    text = table(tags, errors) + "\n\n" + open_clip_text(names, open_clip_errors)
    new = page[:begin] + "\n" + wrapped(text) + "\n" + page[end:]
    if options.check:
        sys.exit(f"{PAGE} is out of date" if new != page else 0)
    PAGE.write_text(new)


if __name__ == "__main__":
    main()

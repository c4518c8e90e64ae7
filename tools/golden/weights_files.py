# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in every format, and malicious ones, for the tests of vitrail/weights.

    python tools/golden/weights_files.py

Writes tests/fixtures/weights/.  expected.safetensors has the tensors that all other files contain, written by the
reference implementation, with its versions in the metadata.
"""

import argparse
import collections
import io
import os
import pathlib
import pickle
import sys
import zipfile

import numpy as np
import safetensors
import safetensors.torch
import torch

OUT = pathlib.Path("tests/fixtures/weights")


class Call:
    """An object that pickles as a call of a function."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


def tensors():
    generator = torch.Generator().manual_seed(7)

    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    base = draw(6, 8)
    parameter = torch.nn.Parameter(draw(3))
    parameter.note = "an attribute"
    with_attribute = draw(2, 2)
    with_attribute.note = "an attribute"
    return collections.OrderedDict(
        f32=draw(3, 4),
        f64=draw(5).double(),
        f16=draw(7).half(),
        bf16=draw(2, 3).bfloat16(),
        i64=torch.tensor([-1, 2**40]),
        i32=torch.tensor([[-7, 8]], dtype=torch.int32),
        i8=torch.tensor([-128, 127], dtype=torch.int8),
        u8=torch.tensor([0, 255], dtype=torch.uint8),
        flags=torch.tensor([True, False, True]),
        scalar=torch.tensor(2.5),
        empty=torch.zeros(0, 3),
        shared=base,
        shared_row=base[2],
        shared_column=base[:, 3],
        transposed=base.t(),
        block=base[1:4, 2:7:2],
        expanded=draw(1, 4).expand(3, 4),
        parameter=torch.nn.Parameter(draw(2)),
        noted=parameter,
        attributed=with_attribute,
    )


def checkpoint(state):
    state._metadata = collections.OrderedDict(version=1)
    return {
        "epoch": 3,
        "best": 0.5,
        "done": None,
        "big": 1 << 90,
        "names": {"a", "b"},
        "raw": b"\xff\x00",
        "size": torch.Size([1, 2]),
        "args": argparse.Namespace(lr=0.1, device=torch.device("cpu"), name="é"),
        "optimizer": {"state": {0: {"exp_avg": torch.arange(5.0)}}, "param_groups": [{"lr": (1, 2, 3, 4)}]},
        "model": state,
    }


def hostile():
    """Yields the file names and contents of pickles that call a function when Python loads them."""
    calls = {
        "system": Call(os.system, "true"),
        "eval": Call(eval, "1"),
        "getattr": Call(getattr, "a", "b"),
        "load": Call(torch.storage._load_from_bytes, b""),
        "import": Call(__import__, "os"),
    }
    for name, call in calls.items():
        yield f"hostile_{name}.pt", lambda call=call: {"model": {"weight": torch.zeros(2), "trap": call}}


def zip_bomb():
    """A data.pkl with a compression ratio of a thousand."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            zipfile.ZipInfo("a/data.pkl", (2020, 1, 1, 0, 0, 0)), b"\x80\x02" + b"]" * (1 << 23), zipfile.ZIP_DEFLATED
        )
    return file.getvalue()


def npz_arrays():
    random = np.random.default_rng(5)
    wide = random.standard_normal((3, 4, 5))
    return {
        "a/b/kernel": wide.astype(np.float32),
        "fortran": np.asfortranarray(wide.astype(np.float32)),
        "f64": wide,
        "f16": wide.astype(np.float16),
        "scalar": np.float32(3.25),
        "empty": np.zeros((0, 2), np.float32),
        "i64": np.arange(3),
        "i32": np.arange(3, dtype=np.int32),
        "i8": np.arange(3, dtype=np.int8),
        "u8": np.arange(3, dtype=np.uint8),
        "flags": np.array([True, False]),
    }


class Scripted(torch.nn.Module):
    """Parameters, a buffer, and modules in a list."""

    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([torch.nn.Linear(2, 3), torch.nn.Linear(3, 2)])
        self.scale = torch.nn.Parameter(torch.ones(2))
        self.register_buffer("offset", torch.tensor([4.0, 5.0]))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x * self.scale + self.offset


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    state = tensors()
    versions = {
        "made with": f"torch {torch.__version__}, safetensors {safetensors.__version__}, numpy {np.__version__}"
    }
    safetensors.torch.save_file(
        {k: v.detach().clone().contiguous() for k, v in state.items()}, OUT / "expected.safetensors", metadata=versions
    )
    torch.save(checkpoint(state), OUT / "zip.pt")
    torch.save(checkpoint(state), OUT / "zip_protocol4.pt", pickle_protocol=4)
    torch.save(checkpoint(state), OUT / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(
        {"weight": torch.tensor([1, 2, 3], dtype=torch.uint16), "bias": torch.ones(2)}, OUT / "unsupported_type.pt"
    )
    torch.save([torch.ones(2)], OUT / "list.pt")
    torch.save(torch.nn.Linear(2, 2), OUT / "module.pt")
    scripted = Scripted()
    with torch.no_grad():
        for i, parameter in enumerate(scripted.parameters()):
            parameter.copy_(torch.arange(parameter.numel()).reshape(parameter.shape).float() + 10 * i)
    torch.jit.script(scripted).save(OUT / "script.pt")
    for name, make in hostile():
        torch.save(make(), OUT / name)
    torch.save({"w": Call(os.system, "true")}, OUT / "hostile_legacy.pt", _use_new_zipfile_serialization=False)
    (OUT / "hostile_plain.pkl").write_bytes(pickle.dumps(Call(os.system, "true"), protocol=2))
    (OUT / "bomb.pt").write_bytes(zip_bomb())

    arrays = npz_arrays()
    np.savez(OUT / "stored.npz", **arrays)
    np.savez_compressed(OUT / "deflated.npz", **arrays)
    safetensors.torch.save_file(
        {k: torch.from_numpy(np.ascontiguousarray(v)).reshape(np.shape(v)) for k, v in arrays.items()},
        OUT / "expected_npz.safetensors",
        metadata=versions,
    )
    np.savez(
        OUT / "objects.npz",
        weight=np.ones(2, np.float32),
        trap=np.array([{"a": 1}, None], dtype=object),
        big_endian=np.ones(2, ">f4"),
    )
    print("torch", torch.__version__, "numpy", np.__version__, "python", sys.version.split()[0])


main()

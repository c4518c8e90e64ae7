# SPDX-License-Identifier: Apache-2.0
"""tests/fixtures/analysis/cka.safetensors: linear CKA with the unbiased HSIC, the formulas in numpy.

Batch B of layer L is "B.L" [n, ...] in float32, "similarities" [layers, layers] the result over the batches in float64.
Layer 1 is layer 0 rotated, scaled and moved; layer 2 is layer 0 with noise; layer 3 is unrelated, with a large mean.
"""

import pathlib

import numpy
from safetensors.numpy import save_file

PATH = pathlib.Path(__file__).resolve().parents[2] / "tests/fixtures/analysis/cka.safetensors"
SIZES = (8, 11)


def layers_of(random, images):
    first = random.normal(size=(images, 4, 3))
    turn = numpy.linalg.qr(numpy.random.default_rng(5).normal(size=(12, 12)))[0]
    rotated = 3 * (first.reshape(images, 12) @ turn) + 2
    noisy = first + 0.5 * random.normal(size=first.shape)
    return [layer.astype(numpy.float32) for layer in (first, rotated, noisy, random.normal(size=(images, 5)) + 10)]


def hsic(k, m):
    """Song et al. 2012, eq. 5, from whole matrices."""
    n, one = len(k), numpy.ones(len(k))
    k, m = k - numpy.diag(numpy.diag(k)), m - numpy.diag(numpy.diag(m))
    centred = (one @ k @ one) * (one @ m @ one) / ((n - 1) * (n - 2))
    return (numpy.trace(k @ m) + centred - 2 / (n - 2) * (one @ k @ m @ one)) / (n * (n - 3))


random = numpy.random.default_rng(0)
batches = [layers_of(random, images) for images in SIZES]
sums = numpy.zeros((4, 4))
for batch in batches:
    grams = [flat @ flat.T for flat in (layer.reshape(len(layer), -1).astype(float) for layer in batch)]
    sums += [[hsic(a, b) for b in grams] for a in grams]
similarities = sums / numpy.sqrt(numpy.outer(numpy.diag(sums), numpy.diag(sums)))
tensors = {f"{b}.{i}": layer for b, batch in enumerate(batches) for i, layer in enumerate(batch)}
save_file(tensors | {"similarities": similarities.astype(numpy.float32)}, PATH)
print(similarities.round(4))

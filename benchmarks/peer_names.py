# SPDX-License-Identifier: Apache-2.0
"""The peers of peers.py."""

# Module and function of each peer.
RUNTIMES = {
    "eager": ("pytorch", "eager"),
    "compiled": ("pytorch", "compiled"),
    "tuned": ("pytorch", "tuned"),
    "zentorch": ("pytorch", "zentorch"),
    "onnxruntime": ("onnxruntime", "dynamic"),
    "onnxruntime_static": ("onnxruntime", "static"),
    "openvino": ("openvino", "prepare"),
    "litert": ("litert", "prepare"),
    "mnn": ("mnn", "prepare"),
}

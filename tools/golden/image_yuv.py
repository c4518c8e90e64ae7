# SPDX-License-Identifier: Apache-2.0
"""Golden data of tests/image/yuv_test.cpp: OpenCV's conversions of NV12 and YUYV to RGB.

Writes tests/fixtures/image/yuv.safetensors: frames in the shapes that OpenCV takes, and results [height, width, 3].
"""

import pathlib

import cv2
import numpy
import safetensors.numpy

WIDTH, HEIGHT = 34, 22

if __name__ == "__main__":
    draw = numpy.random.default_rng(1)
    nv12 = draw.integers(0, 256, (HEIGHT * 3 // 2, WIDTH), numpy.uint8)
    yuyv = draw.integers(0, 256, (HEIGHT, WIDTH, 2), numpy.uint8)
    golden = {
        "nv12.frame": nv12,
        "nv12.result": cv2.cvtColor(nv12, cv2.COLOR_YUV2RGB_NV12),
        "yuyv.frame": yuyv,
        "yuyv.result": cv2.cvtColor(yuyv, cv2.COLOR_YUV2RGB_YUY2),
    }
    safetensors.numpy.save_file(golden, pathlib.Path("tests/fixtures/image/yuv.safetensors"))

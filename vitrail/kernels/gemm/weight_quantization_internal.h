// SPDX-License-Identifier: Apache-2.0
#pragma once
// Symmetric quantisation of a weight to int8, per output channel.
#include <cstdint>

namespace vitrail::kernels {

constexpr int kMaxInt8 = 127;

// The saturation limit of vpmaddubsw, which computes x₀ w₀ + x₁ w₁ of a pair (values 0 and 1, 2 and 3, … of a row) in
// 16 bits: with activations in [0, 255], |w₀ + w₁| ≤ 128 keeps it exact.  Weights of unlike sign never exceed it.
constexpr int kSaturationLimit = 128;

// The largest |w₀ + w₁| with which the int8 GEMM is fastest under the instruction set that is active now:
// kSaturationLimit, or no limit with VNNI and NEON.
int max_int8_pair();

// row [in] → values [in], |value| ≤ kMaxInt8; returns the scale: row ≈ scale · values.  If the row is a multiple of
// integers already, such as a row of a dequantised model, these are found and nothing is rounded.  Otherwise the
// largest |w| or |w₀ + w₁| of a pair becomes 127, on every processor, so that a model has the same values everywhere
// (rounding may add 1 to a pair).  The scale is NaN if a value is not finite.
float quantize_weight_row(const float* row, int64_t in, int8_t* values);

}  // namespace vitrail::kernels

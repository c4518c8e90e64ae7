// SPDX-License-Identifier: Apache-2.0
#pragma once
// How vitrail's own files hold quantised weights (tensor/quantized_tensor.h): NAME of i8 [out, in] beside NAME_scale of
// f32 [out], and optionally its correction as NAME_correction beside NAME_correction_scale.
#include <cstdint>
#include <string>

#include "vitrail/tensor/tensor.h"

namespace vitrail::weights {

// What becomes of weights that the file holds in int8.
enum class Int8Weights : uint8_t {
  dequantize,  // floating tensors: scale · value + correction
  keep,        // Tensor::from_quantized, for a session, which packs the values as they are
};

inline std::string int8_scale_name(const std::string& weight) { return weight + "_scale"; }
inline std::string int8_correction_name(const std::string& weight) { return weight + "_correction"; }
// The correction's name in files of vitrail 0.1.
inline std::string old_int8_correction_name(const std::string& weight) { return weight + "_rest"; }

// How such a file holds the weights of an excluded layer: as f16, or as bf16 where that has the smaller squared error
// (values beyond the range of f16).
Tensor to_16_bits(const Tensor& weight);

}  // namespace vitrail::weights

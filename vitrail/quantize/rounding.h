// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rounds weights to int8: to nearest, or with GPTQ over calibration images.
#include <map>
#include <string>
#include <vector>

#include "vitrail/models/vision_transformer.h"
#include "vitrail/tensor/quantized_tensor.h"

namespace vitrail::quantize {

// Rounds each row to nearest, with the scale that packing in int8 would choose
// (kernels/gemm/weight_quantization_internal.h).  A weight that dequantize() returned is restored exactly.  weight:
// floating [out, in].  Throws Error that names the first element that is not finite.
QuantizedTensor to_int8(const Tensor& weight);

// to_int8(rounded) with the quantisation error original − rounded as its correction.  Both f32 [out, in].
QuantizedTensor with_correction(const Tensor& original, const Tensor& rounded);

// Rounds the weights of the blocks' linear layers to int8 with GPTQ (Frantar et al. 2023), so that the model's output
// changes little rather than each weight.  The Hessian of the inputs lets the weights of correlated inputs compensate
// each other's errors; that of the outputs does so for output channels (Tseng et al. 2025, "YAQA").  The input Hessian
// leaves out what the weight correction covers, because a session corrects it (docs/design/quantization.md).
//
// Afterwards the parameters hold scale · values, which to_int8() and packing restore exactly.  The values keep the
// saturation limit of this processor: a model that was rounded with VNNI runs anywhere, but slower without VNNI.
// images: calibration batches [B, C, H, W].  Returns the original weights by layer ("blocks.0.attn.qkv").
// Throws Error for a layer whose input is not finite.
std::map<std::string, Tensor> gptq_round(models::VisionTransformer& model, const std::vector<Tensor>& images);

}  // namespace vitrail::quantize

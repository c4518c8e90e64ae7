// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weights as the whole numbers that the int8 product multiplies.
#include <map>
#include <string>
#include <vector>

#include "vitrail/models/vision_transformer.h"
#include "vitrail/tensor/quantized_tensor.h"

namespace vitrail::quantize {

// Rounds each row to nearest, with the scale that packing the weight in int8 would choose
// (kernels/gemm/weight_quantization_internal.h): a weight that dequantize() returned is found again without an error.
// weight: floating [out, in].  Throws Error naming the first element that is not finite.
QuantizedTensor to_int8(const Tensor& weight);

// to_int8(rounded) with the quantisation error original − rounded as its correction.  Both [out, in].
QuantizedTensor with_correction(const Tensor& original, const Tensor& rounded);

// Rounds the blocks' linear layers so that not the weights but the answers stay as near as may be.  What the rounding
// of one input's weight adds, the weights of inputs that go along with it take back (Frantar et al. 2023, "GPTQ"; here
// as Babai's nearest plane, from the last input to the first, of which Chen et al. 2025 show that it is the same), and
// what that of one output adds, the outputs that move the answers as it does (Tseng et al. 2025, "YAQA"). The model
// then holds step · numbers, which to_int8() and packing find again without rounding.  Neighbours sum up to no more
// than the int8 product of this processor is fastest with (kernels/gemm/weight_quantization_internal.h): a model
// rounded on one with VNNI runs anywhere, but slower where there is none. A session multiplies what rounding leaves
// (to_int8() of the difference) with the tokens that are read alone and with the others' mean (kernels/gemm/linear.h),
// so rounding sees to the others' differences to their mean. images: batches [B, C, H, W].  Returns the weights as they
// were, by layer: "blocks.0.attn.qkv".
std::map<std::string, Tensor> gptq_round(models::VisionTransformer& model, const std::vector<Tensor>& images);

}  // namespace vitrail::quantize

// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/rounding.h"

#include <algorithm>
#include <set>

#include "vitrail/base/error.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/kernels/gemm/weight_quantization_internal.h"
#include "vitrail/nn/trace.h"
#include "vitrail/quantize/block_layers_internal.h"
#include "vitrail/quantize/gptq_internal.h"
#include "vitrail/quantize/output_hessians_internal.h"
#include "vitrail/quantize/rounding_internal.h"
#include "vitrail/weights/finite_check_internal.h"

namespace vitrail::quantize {
namespace {

// H = Xᵀ X [in, in] of the centred tokens at traced points.
class InputHessians {
 public:
  // run: computes the calibration images.
  InputHessians(std::optional<int64_t> num_head_tokens, const std::set<std::string>& points,
                const std::function<void()>& run)
      : num_head_tokens_(num_head_tokens) {
    const nn::TraceScope scope([&](const std::string& point, const Tensor& x) {
      if (points.contains(point)) accumulate(point, x.to(DType::f32).contiguous());
    });
    run();
  }

  // Returns null if the model has no such point.
  const Tensor* find(const std::string& point) const {
    const auto found = hessians_.find(point);
    return found == hessians_.end() ? nullptr : &found->second;
  }

 private:
  void accumulate(const std::string& point, const Tensor& x) {
    const int64_t in = x.size(-1), rows = x.numel() / in;
    const Tensor& hessian = hessians_.try_emplace(point, Tensor::zeros({in, in})).first->second;
    const Tensor centered = centered_tokens(x, num_head_tokens_);
    kernels::gemm(true, false, in, in, rows, centered.data<float>(), in, centered.data<float>(), in, true,
                  hessian.data<float>(), in);
  }

  std::optional<int64_t> num_head_tokens_;
  std::map<std::string, Tensor> hessians_;
};

// How many blocks are rounded per pass over the images: as many as have Hessians of up to 4 GiB together.
int64_t blocks_per_pass(const VitBlocks& blocks) {
  constexpr int64_t kMaxHessianBytes = int64_t{4} << 30;
  int64_t bytes = 0;
  for (const auto& [layer, input] : traced_inputs(blocks, 0)) {
    const Shape shape = blocks.weight(layer).shape();
    bytes += (shape[0] * shape[0] + shape[1] * shape[1]) * static_cast<int64_t>(sizeof(float));
  }
  return std::max<int64_t>(1, kMaxHessianBytes / bytes);
}

// inputs: the traced input of each layer.  Returns the original weights by layer.
std::map<std::string, Tensor> round_layers(const VitBlocks& blocks, const std::map<std::string, std::string>& inputs,
                                           const std::function<void()>& run, const OutputHessians& output_hessians) {
  std::vector<std::string> layers;
  std::set<std::string> points;
  for (const auto& [layer, input] : inputs) {
    layers.push_back(layer);
    points.insert(input);
  }
  const std::map<std::string, Tensor> outputs = output_hessians(layers);
  const InputHessians hessians(blocks.num_head_tokens, points, run);
  std::map<std::string, Tensor> originals;
  for (const auto& [layer, input] : inputs) {
    const Tensor* const hessian = hessians.find(input);
    if (!hessian && !blocks.is_whole()) continue;  // a block behind the last one that the network reads
    const Tensor weight = blocks.weight(layer);
    originals.emplace(layer, weight.clone());
    if (!hessian || hessian->size(0) != weight.size(1)) {
      throw Error(layer, "a traced input of " + str(weight.size(1)) + " features", input);
    }
    if (weights::first_non_finite(*hessian)) throw Error(layer, "finite inputs", "NaN or infinity in " + input);
    const auto output = outputs.find(layer);
    gptq_round_weight(weight, *hessian, output == outputs.end() ? Tensor() : output->second);
  }
  return originals;
}

}  // namespace

QuantizedTensor to_int8(const Tensor& weight) {
  if (weight.rank() != 2) throw Error("int8 weight", "[out, in]", weight.shape().to_string());
  const Tensor dense = weight.to(DType::f32).contiguous();
  const int64_t out = dense.size(0), in = dense.size(1);
  if (const auto at = weights::first_non_finite(dense)) {
    throw Error(str("int8 weight [", *at / in, ", ", *at % in, "]"), "a finite value", str(dense.data<float>()[*at]));
  }
  QuantizedTensor result{Tensor::empty({out, in}, DType::i8), Tensor::empty({out})};
  for (int64_t r = 0; r < out; ++r) {
    result.scales.data<float>()[r] =
        kernels::quantize_weight_row(dense.data<float>() + r * in, in, result.values.data<int8_t>() + r * in);
  }
  return result;
}

QuantizedTensor with_correction(const Tensor& original, const Tensor& rounded) {
  const Tensor error = original.clone();
  for (int64_t i = 0; i < error.numel(); ++i) error.data<float>()[i] -= rounded.data<float>()[i];
  QuantizedTensor result = to_int8(rounded);
  result.correction = std::make_shared<const QuantizedTensor>(to_int8(error));
  return result;
}

std::map<std::string, Tensor> round_blocks(const VitBlocks& blocks, const std::function<void()>& run,
                                           const OutputHessians& output_hessians) {
  std::map<std::string, Tensor> originals;
  const int64_t depth = blocks.config.depth, count = blocks_per_pass(blocks);
  for (int64_t first = 0; first < depth; first += count) {
    std::map<std::string, std::string> inputs;
    for (int64_t block = first; block < std::min(first + count, depth); ++block)
      inputs.merge(traced_inputs(blocks, block));
    originals.merge(round_layers(blocks, inputs, run, output_hessians));
  }
  return originals;
}

std::map<std::string, Tensor> gptq_round(models::VisionTransformer& model, const std::vector<Tensor>& images) {
  const auto run = [&] {
    for (const Tensor& batch : images) model.forward_features(batch);
  };
  return round_blocks(model, run, [&](const std::vector<std::string>& layers) {
    return output_hessians(model, images, layers);  // makes weights writable, too
  });
}

}  // namespace vitrail::quantize

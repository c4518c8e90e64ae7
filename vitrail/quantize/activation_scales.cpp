// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/activation_scales.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/nn/trace.h"
#include "vitrail/quantize/activation_histogram_internal.h"
#include "vitrail/quantize/block_layers_internal.h"
#include "vitrail/weights/finite_check_internal.h"

namespace vitrail::quantize {
namespace {

constexpr const char *kPatchEmbedding = "patch_embed.proj", *kImages = "images";  // no module has that name

// ‖W_:c‖² of weight [out, in].
std::vector<float> column_squares(const Tensor& weight) {
  const Tensor dense = weight.to(DType::f32).contiguous();
  const int64_t in = dense.size(1);
  std::vector<float> squares(static_cast<size_t>(in));
  for (int64_t i = 0; i < dense.numel(); ++i) squares[i % in] += dense.data<float>()[i] * dense.data<float>()[i];
  return squares;
}

class InputHistograms {
 public:
  explicit InputHistograms(int64_t num_head_tokens) : num_head_tokens_(num_head_tokens) {}

  void add_layer(const std::string& layer, const std::string& point, std::vector<float> importance) {
    inputs_.emplace(point, Input{layer, ActivationHistogram(std::move(importance))});
  }

  void observe(const std::string& point, const Tensor& x) {
    const auto [first, last] = inputs_.equal_range(point);
    if (first == last) return;
    const Tensor rows = x.to(DType::f32).contiguous();
    for (auto input = first; input != last; ++input) {
      const std::string& layer = input->second.layer;
      const int64_t in = input->second.histogram.channels();
      if (rows.numel() % in != 0) throw Error(layer, str("inputs of ", in, " features"), x.shape().to_string());
      if (weights::first_non_finite(rows)) throw Error(layer, "finite inputs", "NaN or infinity in " + point);
      if (x.rank() == 3) {
        add_tokens(rows, input->second.histogram);
      } else {
        input->second.histogram.add(rows.data<float>(), rows.numel() / in, 1);
      }
    }
  }

  std::map<std::string, AffineQuantization> quantizations(DType dtype) const {
    std::map<std::string, AffineQuantization> result;
    for (const auto& [point, input] : inputs_) result.emplace(input.layer, input.histogram.quantization(dtype));
    return result;
  }

 private:
  // Tokens that the head reads individually count as much as all others together, which reach the head only through
  // them.  Counted once, the class token would lose its outliers to clipping.
  void add_tokens(const Tensor& x, ActivationHistogram& histogram) const {
    const int64_t tokens = x.size(1), width = x.size(2), head_tokens = std::min(num_head_tokens_, tokens);
    const float weight =
        head_tokens == 0 ? 1 : static_cast<float>(tokens - head_tokens) / static_cast<float>(head_tokens);
    for (int64_t image = 0; image < x.size(0); ++image) {
      const float* const rows = x.data<float>() + image * tokens * width;
      histogram.add(rows, head_tokens, std::max(weight, 1.0f));
      histogram.add(rows + head_tokens * width, tokens - head_tokens, 1);
    }
  }

  struct Input {
    std::string layer;
    ActivationHistogram histogram;
  };
  int64_t num_head_tokens_;
  std::multimap<std::string, Input> inputs_;  // by traced point
};

}  // namespace

std::map<std::string, AffineQuantization> activation_scales(const models::VisionTransformer& model,
                                                            const std::vector<Tensor>& images, DType dtype,
                                                            const std::vector<std::string>& excluded) {
  if (dtype != DType::i8 && dtype != DType::u8) throw Error("activations", "i8 or u8", name_of(dtype));
  const auto is_excluded = [&](const std::string& layer) { return std::ranges::count(excluded, layer) > 0; };
  InputHistograms inputs(model.num_head_tokens());
  for (int64_t block = 0; block < model.config().depth; ++block) {
    for (const auto& [layer, point] : traced_inputs(model, block)) {
      if (!is_excluded(layer)) inputs.add_layer(layer, point, column_squares(model.parameter(layer + ".weight")));
    }
  }
  const models::PatchNorm norm = model.config().patch_norm;
  const bool reads_pixels = norm != models::PatchNorm::pre && norm != models::PatchNorm::both;
  if (reads_pixels && !is_excluded(kPatchEmbedding)) inputs.add_layer(kPatchEmbedding, kImages, {1});  // all alike
  const nn::TraceScope scope([&](const std::string& point, const Tensor& x) { inputs.observe(point, x); });
  for (const Tensor& batch : images) {
    inputs.observe(kImages, batch);
    model.forward_features(batch);
  }
  return inputs.quantizations(dtype);
}

}  // namespace vitrail::quantize

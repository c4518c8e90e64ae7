// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/smoothing.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <string>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/random.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/nn/trace.h"
#include "vitrail/quantize/layer_inputs.h"
#include "vitrail/quantize/smoothing_factors.h"

namespace vitrail::quantize {
namespace {

// Orthogonal [n, n]: the cosines of the discrete cosine transform (DCT-II), the columns with random signs.
std::vector<float> spreading_turn(int64_t n) {
  RandomStream random(random_key("spreading_turn"));
  std::vector<float> turn(static_cast<size_t>(n * n));
  for (int64_t column = 0; column < n; ++column) {
    const double sign = random.uniform() < 0.5 ? -1 : 1;
    for (int64_t row = 0; row < n; ++row) {
      const double length = std::sqrt((row == 0 ? 1.0 : 2.0) / static_cast<double>(n));
      const double angle = std::numbers::pi * (static_cast<double>(column) + 0.5) * static_cast<double>(row);
      turn[row * n + column] = static_cast<float>(sign * length * std::cos(angle / static_cast<double>(n)));
    }
  }
  return turn;
}

// x [n, width] becomes turn · x; x [height, n] with row stride ld becomes x · turnᵀ.
void turn_rows(const std::vector<float>& turn, int64_t n, float* x, int64_t width) {
  const std::vector<float> before(x, x + n * width);
  kernels::gemm(false, false, n, width, n, turn.data(), n, before.data(), width, false, x, width);
}
void turn_columns(const std::vector<float>& turn, int64_t n, float* x, int64_t height, int64_t ld) {
  std::vector<float> after(static_cast<size_t>(height * n));
  kernels::gemm(false, true, height, n, n, x, ld, turn.data(), n, false, after.data(), n);
  for (int64_t r = 0; r < height; ++r) std::copy_n(after.data() + r * n, n, x + r * ld);
}

// The rows of qkv that make the values: its last third, a head after the other.
struct ValueRows {
  ValueRows(const models::VisionTransformer& model, const std::string& attention)
      : weight(model.parameter(attention + ".qkv.weight")
                   .narrow(0, 2 * third(model, attention), third(model, attention))) {
    if (model.config().qkv_bias)
      bias = model.parameter(attention + ".qkv.bias").narrow(0, 2 * weight.size(0), weight.size(0));
  }
  static int64_t third(const models::VisionTransformer& model, const std::string& attention) {
    return model.parameter(attention + ".qkv.weight").size(0) / 3;
  }
  Tensor weight;  // [heads · head_dim, dim]
  Tensor bias;    // undefined where there is none
};

// Attention is linear in its values.
void turn_values(const models::VisionTransformer& model, const std::string& attention) {
  const ValueRows values(model, attention);
  const Tensor proj = model.parameter(attention + ".proj.weight");
  const int64_t out = proj.size(0), inner = proj.size(1), width = values.weight.size(1),
                n = inner / model.config().num_heads;
  const std::vector<float> turn = spreading_turn(n);
  for (int64_t first = 0; first < inner; first += n) {
    turn_rows(turn, n, values.weight.data<float>() + first * width, width);
    if (values.bias.defined()) turn_rows(turn, n, values.bias.data<float>() + first, 1);
    turn_columns(turn, n, proj.data<float>() + first, out, inner);
  }
}

// Rows of what the traced points give: a part of the tokens that are not read alone.  Those that are have exact weights
// (kernels/gemm/linear.h), and the class token twice the bits.
class InputSamples {
 public:
  explicit InputSamples(int64_t head_tokens) : read_alone_(head_tokens) {}

  // A point that is not known yet is not looked at.
  void want(const std::string& point) { samples_[point]; }
  void see(const std::string& point, const Tensor& x) {
    const auto found = samples_.find(point);
    if (found == samples_.end()) return;
    const Tensor rows = x.to(DType::f32).contiguous();
    const Tensor apart = centered_patch_tokens(rows, read_alone_);
    const int64_t tokens = rows.size(1), width = rows.size(2);
    for (int64_t image = 0; image < rows.size(0); ++image) {
      for (int64_t token = read_alone_; token < tokens; token += kOneOf) {
        const int64_t at = (image * tokens + token) * width;
        append(rows.data<float>() + at, width, found->second.values);
        append(apart.data<float>() + at, width, found->second.apart);
      }
    }
  }
  const InputRows& at(const std::string& point) const { return samples_.at(point); }

 private:
  static void append(const float* row, int64_t width, std::vector<float>& rows) {
    rows.insert(rows.end(), row, row + width);
  }

  static constexpr int64_t kOneOf = 8;  // of 256 pictures at 224 × 224 with patches of 16, 6,400 rows

  int64_t read_alone_;
  std::map<std::string, InputRows> samples_;
};

// x [n, …] with row i of it divided by divisors[i].
void divide_rows(const Tensor& x, const std::vector<float>& divisors) {
  const int64_t width = x.numel() / x.size(0);
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] /= divisors[static_cast<size_t>(i / width)];
}
void multiply_columns(const Tensor& weight, const std::vector<float>& factors) {
  const int64_t in = weight.size(1);
  for (int64_t i = 0; i < weight.numel(); ++i) weight.data<float>()[i] *= factors[static_cast<size_t>(i % in)];
}

// A layer, and what gives its input with nothing but a sum between them: [in] or [in, …] each.
struct Balanced {
  std::string layer;
  std::vector<Tensor> givers;
};

std::vector<Balanced> balanced_layers(const models::VisionTransformer& model) {
  std::vector<Balanced> result;
  for (int64_t block = 0; block < model.config().depth; ++block) {
    const std::string path = str("blocks.", block);
    const ValueRows values(model, path + ".attn");
    result.push_back({path + ".attn.proj", {values.weight}});
    if (values.bias.defined()) result.back().givers.push_back(values.bias);
    if (!model.config().norm_first) continue;  // what follows the norm is read by the residual too
    for (const auto& [layer, norm] : {std::pair{".attn.qkv", ".norm1"}, std::pair{".mlp.fc1", ".norm2"}}) {
      result.push_back(
          {path + layer, {model.parameter(path + norm + ".weight"), model.parameter(path + norm + ".bias")}});
    }
  }
  return result;
}

}  // namespace

void smooth_activations(models::VisionTransformer& model, const std::vector<Tensor>& images) {
  model.requires_grad(true);  // its parameters are to be written to: none is a mapped file's any more
  model.requires_grad(false);
  InputSamples samples(model.num_head_tokens());
  std::map<std::string, std::string> points;
  for (int64_t block = 0; block < model.config().depth; ++block) {
    turn_values(model, str("blocks.", block, ".attn"));
    points.merge(inputs_of(model, block));
  }
  const std::vector<Balanced> layers = balanced_layers(model);
  for (const Balanced& balanced : layers) samples.want(points.at(balanced.layer));
  {
    const nn::TraceScope scope([&](const std::string& point, const Tensor& x) { samples.see(point, x); });
    for (const Tensor& batch : images) model.forward_features(batch);
  }
  // All divisors first: those of qkv's input and of its values are made from the same weights.
  std::vector<std::vector<float>> divisors(layers.size());
  parallel_for_balanced(0, static_cast<int64_t>(layers.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      divisors[i] =
          smoothing_factors(samples.at(points.at(layers[i].layer)), model.parameter(layers[i].layer + ".weight"));
    }
  });
  for (size_t i = 0; i < layers.size(); ++i) {
    for (const Tensor& giver : layers[i].givers) divide_rows(giver, divisors[i]);
    multiply_columns(model.parameter(layers[i].layer + ".weight"), divisors[i]);
  }
}

}  // namespace vitrail::quantize

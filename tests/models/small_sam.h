// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small models of Segment Anything with parameters that a test knows, and the formulas of their parts.  Inputs are so
// small that the ε of the norms matter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "tests/support/golden.h"
#include "vitrail/models/sam/config.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"
#include "vitrail/tensor/param_source.h"

namespace vitrail::models {

// Parameters of a size that the test chooses: one tensor for each name, the same for each module that asks for it.
class SmallParams : public ParamProvider {
 public:
  explicit SmallParams(double weights = 0.02, double norms = 1) : weights_(weights), norms_(norms) {}
  Tensor get(const std::string& path, const Shape& shape, const Initializer& /*init*/) override {
    const auto found = tensors.find(path);
    if (found != tensors.end()) {
      EXPECT_EQ(found->second.shape(), shape) << path;
      return found->second;
    }
    Tensor tensor = Tensor::randn(shape, tensors.size() + 1);
    const bool norm = shape.rank() == 1 && path.ends_with("weight"), variance = path.ends_with("running_var");
    float* const values = tensor.data<float>();
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      const double value = values[i];
      values[i] = static_cast<float>(variance ? 1e-5 * (0.5 + std::abs(value))
                                     : norm   ? norms_ * (1 + 0.3 * value)
                                              : weights_ * value);
    }
    return tensors[path] = tensor;
  }
  bool has(const std::string& path) const override { return !absent.contains(path); }
  void finish() override {}
  const Tensor& operator[](const std::string& path) const { return tensors.at(path); }
  ParamSource source(const std::string& path = "") { return ParamSource(*this, path); }

  std::map<std::string, Tensor> tensors;
  std::set<std::string> absent;

 private:
  double weights_, norms_;
};

inline Tensor small_map(const Shape& shape, uint64_t seed, double scale = 1e-3) {
  return ops::mul(Tensor::randn(shape, seed), Tensor::full({1}, scale));
}

inline Tensor normalised(const SmallParams& params, const std::string& name, const Tensor& x, double eps) {
  return ops::layer_norm(x, params[name + ".weight"], params[name + ".bias"], eps);
}

inline Tensor linear(const SmallParams& params, const std::string& name, const Tensor& x,
                     kernels::Activation activation = kernels::Activation::none) {
  const Tensor y = ops::linear(x, params[name + ".weight"], params[name + ".bias"]);
  return activation == kernels::Activation::none ? y : ops::activation(y, activation);
}

// Relative to the largest value.
inline ::testing::AssertionResult near(const Tensor& got, const Tensor& want) {
  double largest = 0;
  const Tensor values = want.contiguous();
  for (int64_t i = 0; i < values.numel(); ++i) largest = std::max(largest, std::abs(double{values.data<float>()[i]}));
  return testing::close(got, want, 2e-5 * largest);
}

inline SamEncoderConfig small_encoder() {
  return {.grid = 5,
          .patch_size = 2,
          .in_chans = 3,
          .dim = 6,
          .num_heads = 2,
          .head_dim = 3,
          .mlp_hidden = 7,
          .out_chans = 4,
          .norm_eps = 1e-4,
          .blocks = {{.window = 2, .table_length = 3}, {.table_length = 9}}};
}

inline SamEncoderConfig tiny_encoder() {
  return {.grid = 2,
          .in_chans = 3,
          .out_chans = 4,
          .stem = 2,
          .stages = {{.dim = 3, .depth = 1, .hidden = 5, .out_dim = 4, .stride = 2},
                     {.dim = 4, .depth = 2, .hidden = 6, .num_heads = 2, .window = 2, .out_dim = 6, .stride = 1},
                     {.dim = 6, .depth = 1, .hidden = 7, .num_heads = 3, .window = 2}}};
}

inline SamConfig small_sam() {
  SamConfig config;
  config.encoder = small_encoder();
  config.decoder = {.dim = 8,
                    .num_heads = 2,
                    .depth = 2,
                    .cross_dim = 4,
                    .mlp_hidden = 6,
                    .mask_tokens = 3,
                    .upscale_dims = {5, 3},
                    .iou_hidden = 7,
                    .mask_chans = {2, 4}};
  config.encoder.out_chans = 8;
  return config;
}

}  // namespace vitrail::models

// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/rotation_internal.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/kernels/gemm/linear.h"

namespace vitrail::quantize {
namespace {

// An orthogonal matrix [n, n], row-major: the DCT-II, whose columns have random signs.
std::vector<float> rotation_matrix(int64_t n) {
  RandomStream random(random_key("spreading_turn"));  // part of the result: another key gives other int8 files
  std::vector<float> rotation(static_cast<size_t>(n * n));
  for (int64_t column = 0; column < n; ++column) {
    const double sign = random.uniform() < 0.5 ? -1 : 1;
    for (int64_t row = 0; row < n; ++row) {
      const double norm = std::sqrt((row == 0 ? 1.0 : 2.0) / static_cast<double>(n));
      const double angle = std::numbers::pi * (static_cast<double>(column) + 0.5) * static_cast<double>(row);
      rotation[row * n + column] = static_cast<float>(sign * norm * std::cos(angle / static_cast<double>(n)));
    }
  }
  return rotation;
}

// x [n, width] ← R x.
void rotate_rows(const std::vector<float>& rotation, int64_t n, float* x, int64_t width) {
  const std::vector<float> original(x, x + n * width);
  kernels::gemm(false, false, n, width, n, rotation.data(), n, original.data(), width, false, x, width);
}

// x [height, n] with row stride ld ← x Rᵀ.
void rotate_columns(const std::vector<float>& rotation, int64_t n, float* x, int64_t height, int64_t ld) {
  std::vector<float> result(static_cast<size_t>(height * n));
  kernels::gemm(false, true, height, n, n, x, ld, rotation.data(), n, false, result.data(), n);
  for (int64_t r = 0; r < height; ++r) std::copy_n(result.data() + r * n, n, x + r * ld);
}

}  // namespace

void rotate_values(const VitBlocks& blocks) {
  if (blocks.config.scale_attn_inner) return;  // a LayerNorm between the values and proj does not commute
  for (int64_t block = 0; block < blocks.config.depth; ++block) {
    const std::string attention = blocks.block(block) + ".attn";
    const ValueProjection values = value_projection(blocks, attention);
    const Tensor proj = blocks.weight(attention + ".proj");
    const int64_t out = proj.size(0), inner = proj.size(1), in = values.weight.size(1);
    const int64_t head_dim = inner / blocks.config.num_heads;
    const std::vector<float> rotation = rotation_matrix(head_dim);
    for (int64_t channel = 0; channel < inner; channel += head_dim) {
      rotate_rows(rotation, head_dim, values.weight.data<float>() + channel * in, in);
      if (values.bias.defined()) rotate_rows(rotation, head_dim, values.bias.data<float>() + channel, 1);
      rotate_columns(rotation, head_dim, proj.data<float>() + channel, out, inner);
    }
  }
}

}  // namespace vitrail::quantize

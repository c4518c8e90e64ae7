// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/convolution.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/nn/init.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/convolution.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/ops/window.h"

namespace vitrail::nn {
namespace {

void check_map(const Module& layer, const Tensor& x, int64_t channels) {
  if (x.rank() == 4 && x.size(3) == channels) return;
  throw Error(layer.path().empty() ? layer.type() : layer.path(), str("a map [B, h, w, ", channels, "]"),
              x.shape().to_string());
}

// The patches of a map that kernel divides, in (c, dy, dx) order: [B, h, w, C] → [B, h/k, w/k, C·k·k].
Tensor patches_of(const Tensor& x, int64_t kernel) {
  if (x.size(1) % kernel != 0 || x.size(2) % kernel != 0) {
    throw Error("Conv2d", str("sides that the stride ", kernel, " divides"), x.shape().to_string());
  }
  const Tensor windows = ops::window_partition(x, kernel);  // [B·n, k·k, C]
  return ops::contiguous(windows.transpose(1, 2))
      .view({x.size(0), x.size(1) / kernel, x.size(2) / kernel, x.size(3) * kernel * kernel});
}

std::string kernel_text(const Tensor& weight, int64_t in, int64_t out, int64_t stride) {
  const int64_t size = weight.size(2);
  return str(in, ", ", out, ", kernel_size=(", size, ", ", size, "), stride=(", stride, ", ", stride, ")");
}

// Without padding, the stride of every other kernel than 3 is the kernel.
int64_t stride_of(const Conv2dConfig& config) {
  if (config.kernel != 3 && config.padding == 0) return config.kernel;
  if (config.stride < 1) throw Error("Conv2d", "a stride of 1 or more", str(config.stride));
  return config.stride;
}

// The rows of the result whose neighbourhoods take kMaxUnfolded values: a 3×3 convolution unfolds nine times its map.
// A recorded one does not unfold all of it.
int64_t rows_at_a_time(const Tensor& x, int64_t kernel, int64_t stride) {
  constexpr int64_t kMaxUnfolded = int64_t{1} << 25;  // 128 MiB
  if (kernel != 3 || x.is_meta()) return x.size(1);
  const int64_t row = x.size(0) * ceil_div(x.size(2), stride) * 9 * x.size(3);
  return row * ceil_div(x.size(1), stride) <= kMaxUnfolded ? x.size(1) : std::max<int64_t>(kMaxUnfolded / row, 1);
}

}  // namespace

Conv2d::Conv2d(const Conv2dConfig& config, const ParamSource& params)
    : Module(params.path()), stride_(stride_of(config)), padding_(config.kernel == 3 ? 1 : config.padding) {
  const Initializer init = init::torch_default(config.in_chans * config.kernel * config.kernel);
  weight_ = params.get("weight", {config.out_chans, config.in_chans, config.kernel, config.kernel}, init);
  if (config.bias) bias_ = params.get("bias", {config.out_chans}, init);
}

// A few rows of the result at a time.
Tensor Conv2d::forward_in_parts(const Tensor& x, kernels::Activation activation, int64_t rows) const {
  const Tensor weight = weight_.view({weight_.size(0), -1});
  std::vector<Tensor> parts;
  const int64_t all = ceil_div(x.size(1), stride_);
  for (int64_t first = 0; first < all; first += rows) {
    const Tensor patches = ops::unfold_3x3_rows(x, stride_, first, std::min(rows, all - first));
    parts.push_back(ops::linear(patches, weight, bias_, activation));
  }
  return ops::cat(parts, 1);
}

Tensor Conv2d::forward(const Tensor& x, kernels::Activation activation) const {
  check_map(*this, x, weight_.size(1));
  if (const int64_t rows = rows_at_a_time(x, weight_.size(2), stride_); rows < x.size(1) && !tracing())
    return forward_in_parts(x, activation, rows);
  const int64_t kernel = weight_.size(2);
  const Tensor patches = kernel == 1    ? x
                         : kernel == 3  ? ops::unfold_3x3(x, stride_)
                         : padding_ > 0 ? ops::unfold(x, {kernel, stride_, padding_})
                                        : patches_of(x, kernel);
  const Tensor weight = weight_.view({weight_.size(0), -1});
  if (!tracing()) return ops::linear(patches, weight, bias_, activation);
  return ops::activation(traced(*this, ops::linear(patches, weight, bias_)), activation);
}

std::string Conv2d::extra() const {
  const std::string padding = padding_ > 0 ? str(", padding=(", padding_, ", ", padding_, ")") : "";
  return str(kernel_text(weight_, weight_.size(1), weight_.size(0), stride_), padding,
             bias_.defined() ? "" : ", bias=False");
}

void Conv2d::visit(Visitor& visitor) {
  visitor.parameter("weight", weight_);
  visitor.parameter("bias", bias_);
}

ConvTranspose2d::ConvTranspose2d(const Conv2dConfig& config, const ParamSource& params) : Module(params.path()) {
  const Initializer init = init::torch_default(config.out_chans * config.kernel * config.kernel);
  weight_ = params.get("weight", {config.in_chans, config.out_chans, config.kernel, config.kernel}, init);
  bias_ = params.get("bias", {config.out_chans}, init);
}

Tensor ConvTranspose2d::forward(const Tensor& x, kernels::Activation activation) const {
  check_map(*this, x, weight_.size(0));
  const int64_t out = weight_.size(1), cells = weight_.size(2) * weight_.size(3);
  const Tensor weight = weight_.view({weight_.size(0), out * cells}).transpose(0, 1);  // [out·k·k, in]
  const Tensor bias = bias_.unsqueeze(1).expand({out, cells}).reshape({out * cells});
  const int64_t factor = weight_.size(2);
  if (!tracing()) return ops::pixel_shuffle(ops::linear(x, weight, bias, activation), factor);
  return ops::activation(traced(*this, ops::pixel_shuffle(ops::linear(x, weight, bias), factor)), activation);
}

std::string ConvTranspose2d::extra() const {
  return kernel_text(weight_, weight_.size(0), weight_.size(1), weight_.size(2));
}

void ConvTranspose2d::visit(Visitor& visitor) {
  visitor.parameter("weight", weight_);
  visitor.parameter("bias", bias_);
}

}  // namespace vitrail::nn

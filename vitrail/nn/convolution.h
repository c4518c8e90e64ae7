// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolutions of maps with their channels last.  Their parameters have PyTorch's names and layouts.
#include "vitrail/kernels/rowwise/activation.h"
#include "vitrail/nn/module.h"

namespace vitrail::nn {

struct Conv2dConfig {
  int64_t in_chans = 0, out_chans = 0;
  int64_t kernel = 1;  // 1; 3: padding 1; any other without padding: stride = kernel, which must divide the map's sides
  bool bias = true;
  int64_t stride = 1;   // for a kernel of 3, and with padding
  int64_t padding = 0;  // Kernels other than 1 and 3 may have it.
};

// A convolution and an activation: x [B, h, w, in] → [B, ⌈h/s⌉, ⌈w/s⌉, out] with stride s; with padding p and kernel k,
// ⌊(h + 2p − k) / s⌋ + 1 rows.  Parameters: weight [out,
// in, kernel, kernel], bias [out]. Source: torch.nn.Conv2d.
class Conv2d : public Module {
 public:
  Conv2d(const Conv2dConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& x, kernels::Activation activation = kernels::Activation::none) const;
  std::string type() const override { return "Conv2d"; }
  std::string extra() const override;
  void visit(Visitor& visitor) override;

 private:
  Tensor forward_in_parts(const Tensor& x, kernels::Activation activation, int64_t rows) const;

  int64_t stride_, padding_;
  Tensor weight_, bias_;
};

// Transposed convolution with kernel = stride, and an activation: x [B, h, w, in] → [B, kernel·h, kernel·w, out].
// Parameters: weight [in, out, kernel, kernel], bias [out].  Source: torch.nn.ConvTranspose2d.
class ConvTranspose2d : public Module {
 public:
  ConvTranspose2d(const Conv2dConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& x, kernels::Activation activation = kernels::Activation::none) const;
  std::string type() const override { return "ConvTranspose2d"; }
  std::string extra() const override;
  void visit(Visitor& visitor) override;

 private:
  Tensor weight_, bias_;
};

}  // namespace vitrail::nn

// SPDX-License-Identifier: Apache-2.0
#pragma once
// 3×3 convolutions with packed weights: y = activation(x ∗ W + b) + residual.
#include <memory>

#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/kernels/rowwise/unfold.h"

namespace vitrail::kernels {

class PackedGemm;
class WinogradConvolution;

// A 3×3 convolution's weight, packed once for maps of any size.  Immutable after construction, as PackedLinear.
class PackedConvolution {
 public:
  // weight [out, channels, 3, 3]; bias [out] or null.  Both are read here and not kept.
  PackedConvolution(const float* weight, const float* bias, int64_t out, int64_t channels, int64_t stride,
                    Precision precision);
  // int8, of weight = scales ⊙ values, values [out, 3, 3, channels] and scales [out], as PackedLinear.
  PackedConvolution(const int8_t* values, const float* scales, const float* bias, int64_t out, int64_t channels);
  ~PackedConvolution();

  // x [maps, height, width, channels] → y [cells, out] = epilogue(x ∗ W + b), with padding 1.  The rows of y and of the
  // residual are the cells of all maps.  y must not overlap x.  `scratch` has scratch_bytes(), 64-byte aligned.
  void run(const float* x, const Neighbourhoods& map, int64_t maps, const MatrixView<float>& y,
           const Epilogue& epilogue, std::byte* scratch) const;
  size_t scratch_bytes(const Neighbourhoods& map, int64_t maps) const;

  Arithmetic arithmetic() const;
  const char* implementation() const;  // as PackedLinear's
  bool is_winograd() const { return winograd_ != nullptr; }
  size_t packed_bytes() const;

 private:
  // One of the two is null.
  std::unique_ptr<const PackedGemm> of_neighbourhoods_;
  std::unique_ptr<const WinogradConvolution> winograd_;
};

}  // namespace vitrail::kernels

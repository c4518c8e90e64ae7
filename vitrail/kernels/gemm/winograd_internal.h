// SPDX-License-Identifier: Apache-2.0
#pragma once
// 3×3 convolutions with stride 1 by Winograd's minimal filtering F(2×2, 3×3) (Lavin & Gray 2016, "Fast algorithms for
// convolutional neural networks"): 16 multiplications for four cells of the result instead of 36.
#include <vector>

#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/kernels/isa/aligned_array_internal.h"
#include "vitrail/kernels/rowwise/unfold.h"

namespace vitrail::kernels {

class WinogradConvolution {
 public:
  // Vector instruction sets; channels enough to fill vectors.
  static bool applies(int64_t out, int64_t channels, int64_t stride);

  // weight [out, channels, 3, 3]; bias [out] or null.  Both are read here and not kept.
  WinogradConvolution(const float* weight, const float* bias, int64_t out, int64_t channels);

  // The arguments are those of PackedConvolution::run().
  void run(const float* x, const Neighbourhoods& map, int64_t maps, const MatrixView<float>& y,
           const Epilogue& epilogue, std::byte* scratch) const;
  size_t scratch_bytes(const Neighbourhoods& map, int64_t maps) const;
  size_t packed_bytes() const;

 private:
  int64_t tiles_at_a_time(const Neighbourhoods& map, int64_t maps) const;

  int64_t out_, channels_;
  std::vector<PackedLinear> weights_;  // one for each element of a transformed tile
  AlignedArray<float> bias_, zeros_;
};

}  // namespace vitrail::kernels

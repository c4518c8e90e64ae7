// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rotary position embedding: rotates the pairs of values of each query and key by angles that depend on the token.
#include <cstdint>

namespace vitrail::kernels {

// The pairs of a head of d values.  halves: (i, i + d/2), as DINOv3; interleaved: (2i, 2i + 1), as EVA-02.
enum class RotaryPairs : uint8_t { halves, interleaved };

// x and y: contiguous fused projections [batch, tokens, 3, heads, head_dim]; y may be x.
// table: rows [tokens − prefix, head_dim], d/2 cosines and then d/2 sines of a token, with strides in elements from
// sample to sample and from head to head (0: shared).
template <class T>
struct RotaryArgsOf {
  const T* x = nullptr;
  T* y = nullptr;
  int64_t batch = 0, tokens = 0, heads = 0, head_dim = 0;
  int64_t prefix = 0;  // leading tokens that are not rotated
  const T* table = nullptr;
  int64_t table_batch_stride = 0, table_head_stride = 0;
  RotaryPairs pairs = RotaryPairs::halves;
  bool inverse = false;  // rotates by the negative angles
};
using RotaryArgs = RotaryArgsOf<float>;

// Rotates q and k: (a, b) → (a · cos − b · sin, b · cos + a · sin).  v is copied, unless y is x.
void rotary(const RotaryArgs& args);
void rotary(const RotaryArgsOf<double>& args);

}  // namespace vitrail::kernels

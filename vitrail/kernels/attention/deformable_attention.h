// SPDX-License-Identifier: Apache-2.0
#pragma once
// Multi-scale deformable attention (Zhu et al. 2021, "Deformable DETR", eq. 3): a query reads each map at a few points
// and adds what it finds, weighted.
#include <array>
#include <cstdint>
#include <span>

namespace vitrail::kernels {

// Levels: the heights and widths of the maps, whose cells are one behind the other in `values`.
template <class T>
struct DeformableAttentionArgs {
  int64_t batch = 0, queries = 0, heads = 0, head_dim = 0;
  int64_t points = 0;  // points of a query in each map
  std::span<const std::array<int64_t, 2>> levels{};
  const T* values = nullptr;     // [batch, cells, heads, head_dim]
  const T* locations = nullptr;  // [batch, queries, heads, levels, points, 2]: x and y, from 0 to 1 inside a map
  const T* weights = nullptr;    // [batch, queries, heads, levels, points]

  int64_t cells() const {
    int64_t count = 0;
    for (const auto& [height, width] : levels) count += height * width;
    return count;
  }
  // The points of a head of a query, in all maps.
  int64_t samples() const { return static_cast<int64_t>(levels.size()) * points; }
};

// out [batch, queries, heads, head_dim] = Σ weight · map(location).  Between the centres of cells a map is interpolated
// bilinearly, and around it are zeros (torch's grid_sample with align_corners=False).  A location that is not a number
// is outside.  The version in double is the specification of that in float.
void deformable_attention(const DeformableAttentionArgs<float>& args, float* out);
void deformable_attention(const DeformableAttentionArgs<double>& args, double* out);

// The gradients of values, locations and weights, given that of `out`.  They have the shapes of the inputs, and are
// overwritten.
void deformable_attention_backward(const DeformableAttentionArgs<float>& args, const float* grad, float* grad_values,
                                   float* grad_locations, float* grad_weights);
void deformable_attention_backward(const DeformableAttentionArgs<double>& args, const double* grad, double* grad_values,
                                   double* grad_locations, double* grad_weights);

}  // namespace vitrail::kernels

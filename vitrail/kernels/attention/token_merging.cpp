// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/attention/token_merging.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/attention/token_merging.cpp"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/gemm/fp32_microkernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

int64_t merging_panel_columns() { return panel_columns(); }

// out [rows of a, ld] = a [rows, k] · bᵀ, b [columns, k].  `panel` has k × panel columns; ld is a multiple of these.
void multiply_transposed(const float* a, int64_t rows, const float* b, int64_t columns, int64_t k, float* panel,
                         float* out, int64_t ld) {
  const int64_t width = panel_columns();
  for (int64_t c = 0; c < columns; c += width) {
    pack_transposed(b + c * k, k, std::min(width, columns - c), k, 1.0f, panel);
    multiply_panel(a, k, panel, k, rows, StoredAccumulators<false>{out + c, ld});
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cmath>
#include <limits>
#include <utility>

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/scalar_gemm_internal.h"
#include "vitrail/kernels/isa/thread_scratch_internal.h"

namespace vitrail::kernels {
namespace {

int64_t scalar_panel_columns() { return 1; }
void scalar_multiply_transposed(const float* a, int64_t rows, const float* b, int64_t columns, int64_t k, float*,
                                float* out, int64_t ld) {
  scalar::gemm(false, true, rows, columns, k, a, k, b, k, false, out, ld);
}

VITRAIL_EXPORT(merging_panel_columns, scalar_panel_columns);
VITRAIL_EXPORT(multiply_transposed, scalar_multiply_transposed);

// Every second token from `first`.
struct Side {
  int64_t first, count;
  int64_t token(int64_t i) const { return first + 2 * i; }
};
// Bipartite matching: even tokens are the sources, odd tokens the destinations.
Side side_of(int64_t tokens, int64_t prefix, int64_t parity) {
  const int64_t first = prefix + (prefix % 2 == parity ? 0 : 1);
  return {first, first < tokens ? (tokens - first + 1) / 2 : 0};
}

struct Sides {
  Side sources, destinations;
  Sides(int64_t tokens, int64_t prefix)
      : sources(side_of(tokens, prefix, 0)), destinations(side_of(tokens, prefix, 1)) {}
};

// A thread's memory for one sample.
struct Scratch {
  float *sources, *destinations;  // directions of keys [side's count, head_dim]
  float* panel;
  float* cosines;  // [sources, ld]
  int64_t ld;
  float* best;       // [sources]: the largest cosine of each
  int32_t* partner;  // [sources]: whose it is; −1 for those that stay
  int32_t* order;    // [sources]: by falling likeness

  Scratch(const TokenMergingArgs& args, const Sides& sides, int64_t panel_width) {
    const int64_t a = sides.sources.count, b = sides.destinations.count, d = args.head_dim;
    ld = round_up(b, panel_width);
    float* at = thread_scratch(panel_width * d + (a + b) * d + a * (ld + 3));
    auto take = [&at](int64_t floats) { return std::exchange(at, at + floats); };
    panel = take(panel_width * d);  // first: its loads are aligned
    sources = take(a * d);
    destinations = take(b * d);
    cosines = take(a * ld);
    best = take(a);
    partner = reinterpret_cast<int32_t*>(take(a));
    order = reinterpret_cast<int32_t*>(take(a));
  }
};

// Each token's key, summed over heads, at length 1 (a key of zeros stays zero, so its similarity is 0).
void key_directions(const TokenMergingArgs& args, int64_t sample, const Side& side, float* directions) {
  const int64_t d = args.head_dim;
  for (int64_t i = 0; i < side.count; ++i) {
    float* const sum = directions + i * d;
    std::fill(sum, sum + d, 0.0f);
    for (int64_t h = 0; h < args.heads; ++h) {
      const float* const key = args.keys.data + sample * args.keys.batch_stride + h * args.keys.head_stride +
                               side.token(i) * args.keys.token_stride;
      for (int64_t e = 0; e < d; ++e) sum[e] += key[e];
    }
    double squares = 0;
    for (int64_t e = 0; e < d; ++e) squares += static_cast<double>(sum[e]) * sum[e];
    const float factor = squares > 0 ? static_cast<float>(1 / std::sqrt(squares)) : 0.0f;
    for (int64_t e = 0; e < d; ++e) sum[e] *= factor;
  }
}

// Matches sources to their most similar destinations; partner is −1 for sources that are not merged.
void match(const TokenMergingArgs& args, const Sides& sides, const Scratch& scratch) {
  const int64_t a = sides.sources.count, b = sides.destinations.count, d = args.head_dim;
  auto* const multiply = &VITRAIL_DISPATCH(multiply_transposed);
  multiply(scratch.sources, a, scratch.destinations, b, d, scratch.panel, scratch.cosines, scratch.ld);
  for (int64_t i = 0; i < a; ++i) {
    const float* const row = scratch.cosines + i * scratch.ld;
    float max = -std::numeric_limits<float>::infinity();  // unchanged if the row is NaN
    int32_t argmax = 0;
    for (int64_t j = 0; j < b; ++j) {
      if (row[j] > max) max = row[j], argmax = static_cast<int32_t>(j);
    }
    scratch.best[i] = max;
    scratch.partner[i] = argmax;
    scratch.order[i] = static_cast<int32_t>(i);
  }
  std::sort(scratch.order, scratch.order + a, [&](int32_t left, int32_t right) {
    return scratch.best[left] != scratch.best[right] ? scratch.best[left] > scratch.best[right] : left < right;
  });
  for (int64_t i = args.merged; i < a; ++i) scratch.partner[scratch.order[i]] = -1;
}

// The rows of one sample and their destinations.
class Rows {
 public:
  Rows(const TokenMergingArgs& args, int64_t sample)
      : width_(args.width),
        x_(args.x + sample * args.tokens * args.width),
        sizes_(args.sizes ? args.sizes + sample * args.tokens : nullptr),
        out_(args.out + sample * (args.tokens - args.merged) * args.width),
        out_sizes_(args.out_sizes + sample * (args.tokens - args.merged)) {}

  float size(int64_t token) const { return sizes_ ? sizes_[token] : 1.0f; }
  void keep(int64_t token, int64_t to) const {
    std::copy_n(x_ + token * width_, width_, out_ + to * width_);
    out_sizes_[to] = size(token);
  }
  // Row `to` becomes the mean of itself and the token, weighted by size.
  void join(int64_t token, int64_t to) const {
    const float total = out_sizes_[to] + size(token), share = size(token) / total;
    const float* const from = x_ + token * width_;
    float* const mean = out_ + to * width_;
    for (int64_t c = 0; c < width_; ++c) mean[c] += share * (from[c] - mean[c]);
    out_sizes_[to] = total;
  }

 private:
  int64_t width_;
  const float *x_, *sizes_;
  float *out_, *out_sizes_;
};

void merge_sample(const TokenMergingArgs& args, int64_t sample, const Sides& sides, const Scratch& scratch) {
  key_directions(args, sample, sides.sources, scratch.sources);
  key_directions(args, sample, sides.destinations, scratch.destinations);
  match(args, sides, scratch);
  const Rows rows(args, sample);
  int64_t to = 0;
  for (; to < args.prefix; ++to) rows.keep(to, to);
  for (int64_t i = 0; i < sides.sources.count; ++i) {
    if (scratch.partner[i] < 0) rows.keep(sides.sources.token(i), to++);
  }
  for (int64_t j = 0; j < sides.destinations.count; ++j) rows.keep(sides.destinations.token(j), to + j);
  for (int64_t i = 0; i < sides.sources.count; ++i) {
    if (scratch.partner[i] >= 0) rows.join(sides.sources.token(i), to + scratch.partner[i]);
  }
}

}  // namespace

int64_t max_mergeable(int64_t tokens, int64_t prefix) { return std::max<int64_t>(0, tokens - prefix) / 2; }

void merge_tokens(const TokenMergingArgs& args) {
  const Sides sides(args.tokens, args.prefix);
  const int64_t panel_width = VITRAIL_DISPATCH(merging_panel_columns)();
  parallel_for(0, args.batch, 1, [&](int64_t first, int64_t last) {
    const Scratch scratch(args, sides, panel_width);
    for (int64_t sample = first; sample < last; ++sample) merge_sample(args, sample, sides, scratch);
  });
  const int64_t left = args.batch * (args.tokens - args.merged);
  for (int64_t i = 0; i < left; ++i) args.out_log_sizes[i] = std::log(args.out_sizes[i]);
}

}  // namespace vitrail::kernels
#endif

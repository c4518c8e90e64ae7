// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/gemm/quantized_gemm_internal.h"

#include <algorithm>

#include "vitrail/base/parallel.h"

namespace vitrail::kernels {

QuantizedGemm::QuantizedGemm(const float* bias, int64_t out, int64_t in, const Layout& layout)
    : layout_(layout),
      out_(out),
      in_(in),
      words_((in + layout.numbers - 1) / layout.numbers),
      panels_((out + layout.width - 1) / layout.width),
      weight_(zero_weights<int32_t>(columns() * words_)),
      bias_(zero_weights<float>(columns())) {
  if (bias) std::copy_n(bias, out, bias_.get());
}

// A weight that stays in the second level of cache goes by as often as it likes, and the sums of fewer rows stay in the
// first: 1 % of ViT-Ti in 8 bits.  ViT-B would be 1.4 % slower by it.
QuantizedRows QuantizedGemm::rows_of(int64_t rows, int64_t two_term_every) const {
  constexpr int64_t kSmallWeight = 64 << 10;  // words
  constexpr int64_t kFewRows = 48;
  return {rows, layout_.fine_rows ? two_term_every : 0, columns() * words_ <= kSmallWeight ? kFewRows : kMaxRows};
}

size_t QuantizedGemm::scratch_bytes(int64_t rows, int64_t two_term_every) const {
  if (rows <= 0) return 0;
  return static_cast<size_t>(rows_of(rows, two_term_every).places() * (layout_.heading + words_)) * sizeof(int32_t);
}

void QuantizedGemm::run(const GemmArgs& args) const {
  if (args.rows <= 0) return;
  const QuantizedRows rows = rows_of(args.rows, args.two_term_every);
  const int64_t ldx = layout_.heading + words_;
  auto* const x = reinterpret_cast<int32_t*>(args.scratch) + layout_.heading;
  write_rows(args, rows, x);
  const RowBias row_biases = args.rest ? args.rest->biases(args.x, args.ldx, args.correction_scratch) : RowBias{};
  const int64_t flops = 2 * width() * in_ * std::min(args.rows, rows.block());
  const int64_t grain = 1 + 100'000 / (flops + 1);  // these take 0.5 µs, a loop of an awake team half as long
  for_each_gemm_task(args.rows, rows.block(), panels_, width(), grain,
                     [&](int64_t first, int64_t count, int64_t panel, int64_t panels) {
                       const int64_t column = panel * width(), columns = std::min(panels * width(), out_ - column);
                       RowBias row_bias = row_biases;
                       if (row_bias.data) row_bias.data += column;
                       run_task({.x = x + rows.place(first) * ldx,
                                 .ldx = ldx,
                                 .fine = rows.fine_from(first),
                                 .panels = weight_.get() + column * words_,
                                 .words = words_,
                                 .width = width(),
                                 .add_panel = sums(),
                                 .bias = bias_.get() + column,
                                 .row_bias = row_bias,
                                 .first_row = first,
                                 .to = output_of(args, first, count, column, columns)},
                                column);
                     });
}

void QuantizedGemm::write_rows(const GemmArgs& args, const QuantizedRows& rows, int32_t* x) const {
  const int64_t grain = 1 + 16384 / (in_ + 1);
  if (!args.rest) {
    parallel_for(0, args.rows, grain, [&](int64_t first, int64_t last) { write_rows(args, rows, first, last, x); });
    return;
  }
  const int64_t parts = args.rest->parts();
  parallel_for(0, parts, grain * parts / args.rows, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) write_part(args, rows, p, x);
  });
}

// A few rows at a time, which the first level of cache still has when they are summed up.
void QuantizedGemm::write_part(const GemmArgs& args, const QuantizedRows& rows, int64_t p, int32_t* x) const {
  constexpr int64_t kFloats = 4096;
  const int64_t few = std::max<int64_t>(1, kFloats / (in_ + 1));
  const WeightCorrection::Part part = args.rest->part(p);
  for (int64_t first = part.first; first < part.last; first += few) {
    const int64_t last = std::min(first + few, part.last);
    write_rows(args, rows, first, last, x);
    args.rest->sum_up(args.x, args.ldx, p, first, last, args.correction_scratch);
  }
}

// What fills the last word is multiplied by the weight's zeros, and so must be finite.
void QuantizedGemm::write_rows(const GemmArgs& args, const QuantizedRows& rows, int64_t first, int64_t last,
                               int32_t* x) const {
  const int64_t ldx = layout_.heading + words_;
  for (int64_t r = first; r < last; ++r) {
    int32_t* const words = x + rows.place(r) * ldx;
    int32_t* const rest = rows.is_fine(r) ? x + rows.place_of_rest(r) * ldx : nullptr;
    for (int32_t* const row : {words, rest}) {
      if (row && words_ > 0) row[words_ - 1] = 0;
    }
    write_row(args.x + r * args.ldx, words, rest);
  }
}

}  // namespace vitrail::kernels

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

// A small weight stays in the second-level cache; then with fewer rows the accumulators stay in the first.
QuantizedRows QuantizedGemm::layout_of(const LinearRows& rows) const {
  constexpr int64_t kSmallWeight = 64 << 10;  // groups
  constexpr int64_t kFewRows = 48;
  return {rows.count, layout_.two_term_rows ? rows.two_term : TwoTermRows{},
          columns() * words_ <= kSmallWeight ? kFewRows : kMaxRows};
}

size_t QuantizedGemm::quantized_bytes(const QuantizedRows& rows) const {
  constexpr size_t kAlignment = 64;  // of the correction's scratch, which follows
  const auto bytes = static_cast<size_t>(rows.num_slots() * (layout_.heading + words_)) * sizeof(int32_t);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

size_t QuantizedGemm::scratch_bytes(const LinearRows& rows) const {
  if (rows.count <= 0) return 0;
  return quantized_bytes(layout_of(rows)) + WeightCorrectionPass(rows).scratch_bytes();
}

void QuantizedGemm::run(const GemmArgs& args) const {
  if (args.rows.count <= 0) return;
  const QuantizedRows rows = layout_of(args.rows);
  const WeightCorrectionPass correction(args.rows);
  std::byte* const correction_scratch = args.scratch + quantized_bytes(rows);
  quantize_rows(args, rows, correction, correction_scratch);
  const RowBias row_biases = correction.row_biases(args.x, correction_scratch);
  const int64_t ldx = layout_.heading + words_;
  const int32_t* const x = reinterpret_cast<const int32_t*>(args.scratch) + layout_.heading;
  const int64_t flops = 2 * width() * in_ * std::min(args.rows.count, rows.block());
  const int64_t grain = 1 + 100'000 / (flops + 1);  // these take 0.5 µs, a loop of an awake team half as long
  for_each_gemm_task(args.rows.count, rows.block(), panels_, width(), grain,
                     [&](int64_t first, int64_t count, int64_t panel, int64_t panels) {
                       const int64_t column = panel * width(), columns = std::min(panels * width(), out_ - column);
                       RowBias row_bias = row_biases;
                       if (row_bias.data) row_bias.data += column;
                       run_task({.x = x + rows.slot(first) * ldx,
                                 .ldx = ldx,
                                 .two_term = rows.two_term_from(first),
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

void QuantizedGemm::quantize_rows(const GemmArgs& args, const QuantizedRows& rows,
                                  const WeightCorrectionPass& correction, std::byte* correction_scratch) const {
  const int64_t grain = 1 + 16384 / (in_ + 1);
  if (!correction.enabled()) {
    parallel_for(0, args.rows.count, grain,
                 [&](int64_t first, int64_t last) { quantize_rows(args, rows, first, last); });
    return;
  }
  // A few rows at a time, which are still in the first-level cache when they are accumulated.
  constexpr int64_t kFloats = 4096;
  const int64_t few = std::max<int64_t>(1, kFloats / (in_ + 1)), chunks = correction.num_chunks();
  parallel_for(0, chunks, grain * chunks / args.rows.count, [&](int64_t first_chunk, int64_t last_chunk) {
    for (int64_t c = first_chunk; c < last_chunk; ++c) {
      const WeightCorrectionPass::RowRange chunk = correction.chunk(c);
      for (int64_t first = chunk.first; first < chunk.last; first += few) {
        const int64_t last = std::min(first + few, chunk.last);
        quantize_rows(args, rows, first, last);
        correction.accumulate(args.x, c, {first, last}, correction_scratch);
      }
    }
  });
}

// The padding of the last group is multiplied by the weight's zeros, so it must be finite.
void QuantizedGemm::quantize_rows(const GemmArgs& args, const QuantizedRows& rows, int64_t first, int64_t last) const {
  const int64_t ldx = layout_.heading + words_;
  int32_t* const x = reinterpret_cast<int32_t*>(args.scratch) + layout_.heading;
  for (int64_t r = first; r < last; ++r) {
    int32_t* const words = x + rows.slot(r) * ldx;
    int32_t* const low_term = rows.has_low_term(r) ? x + rows.low_term_slot(r) * ldx : nullptr;
    for (int32_t* const row : {words, low_term}) {
      if (row && words_ > 0) row[words_ - 1] = 0;
    }
    write_row(args.x.data + r * args.x.ld, words, low_term);
  }
}

}  // namespace vitrail::kernels

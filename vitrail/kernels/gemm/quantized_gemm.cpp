// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/gemm/quantized_gemm_internal.h"

#include <algorithm>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/gemm/quantized_gemm.cpp"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/gemm/epilogue-inl.h"

#ifndef VITRAIL_KERNELS_QUANTIZED_GEMM_ONCE
#define VITRAIL_KERNELS_QUANTIZED_GEMM_ONCE
namespace vitrail::kernels {

enum class Accumulators : uint8_t { int32, int32_with_zero_points, fp32 };

// One output block's operands.
struct QuantizedBlock {
  const int32_t* x;  // [rows, then low terms of two_term][k_groups], row stride ldx
  int64_t ldx;
  TwoTermRows two_term;  // counted from the block's first row
  const int32_t* panels;
  int64_t k_groups;
  PanelLayout panel;
  DotMicrokernel microkernel;
  // From the block's first column on:
  const float* scales;
  const int32_t* compensation;  // null: x has no zero points
  bool float_accumulators;
  const float* bias;
  RowBias row_bias;  // replaces bias unless null
  int64_t first_row;
  OutputBlock out;
};

}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

// accumulators [rows, then low terms][kMaxBlockColumns] = x · panels, one block of K after another.
HWY_INLINE void accumulate(const QuantizedBlock& block, int32_t* accumulators) {
  const int64_t depth_blocks = std::max<int64_t>(1, ceil_div(block.k_groups, kMaxBlockDepth));
  const auto edge = [&](int64_t i) HWY_ATTR {
    const int64_t together = block.panel.interleaved_groups;
    return block.k_groups * i / depth_blocks / together * together;
  };
  const int64_t width = block.panel.columns;
  const BlockPanels panels{block.panels, block.out.columns, block.k_groups, width};
  for (int64_t i = 0; i < depth_blocks; ++i) {
    const int64_t first = edge(i), last = edge(i + 1);
    for (int64_t column = 0; column < block.out.columns; column += width) {
      block.microkernel({.x = block.x + first,
                         .ldx = block.ldx,
                         .panel = block.panels + column * block.k_groups + first * width,
                         .k_groups = last - first,
                         .rows = block.out.rows + count_before(block.two_term, block.out.rows),
                         .accumulators = accumulators + column,
                         .ld_accumulators = kMaxBlockColumns,
                         .accumulate = i > 0,
                         .next = panels.after(column, first, last)});
    }
  }
}

// scale_x · scale_w · (accumulator − zero_point · compensation) + addend for a vector of columns from c on.
template <Accumulators type, class D, class V>
HWY_INLINE V dequantize(D d, const QuantizedBlock& block, QuantizationParams x, const int32_t* accumulators, int64_t c,
                        V addend) {
  const hn::RebindToSigned<D> d32;
  const auto scale = hn::Mul(hn::Set(d, x.scale), hn::Load(d, block.scales + c));
  if constexpr (type == Accumulators::fp32) {
    return hn::MulAdd(hn::Load(d, reinterpret_cast<const float*>(accumulators + c)), scale, addend);
  }
  auto exact = hn::Load(d32, accumulators + c);
  if constexpr (type == Accumulators::int32_with_zero_points) {
    exact = hn::Sub(exact, hn::Mul(hn::Set(d32, x.zero_point), hn::Load(d32, block.compensation + c)));
  }
  return hn::MulAdd(hn::ConvertTo(d, exact), scale, addend);
}

// A two-term row keeps more bits than 8 or 16, so its activation is not the coarse one.
template <Activation kind, Accumulators type>
HWY_INLINE void finish_rows(const QuantizedBlock& block, const int32_t* accumulators) {
  const OutputBlock& out = block.out;
  const int32_t *x = block.x, *low_x = x + out.rows * block.ldx;
  const int32_t* low_accumulators = accumulators + out.rows * kMaxBlockColumns;
  int64_t next_two_term = block.two_term.stride > 0 ? block.two_term.first : -1;
  RowBiasIterator biases(block.row_bias, block.first_row);
  for (int64_t r = 0; r < out.rows; ++r, x += block.ldx, accumulators += kMaxBlockColumns) {
    const QuantizationParams params = load_metadata(x);
    const float* const bias = block.row_bias.data ? biases.next() : block.bias;
    const auto high = [&](auto d, int64_t c) HWY_ATTR {
      return dequantize<type>(d, block, params, accumulators, c, hn::Load(d, bias + c));
    };
    if (r != next_two_term) {
      finish_row<kind, true>(high, out, r);
      continue;
    }
    const QuantizationParams low_params = load_metadata(low_x);
    const auto both = [&](auto d, int64_t c)
                          HWY_ATTR { return dequantize<type>(d, block, low_params, low_accumulators, c, high(d, c)); };
    finish_row<kind>(both, out, r);
    next_two_term += block.two_term.stride;
    low_x += block.ldx;
    low_accumulators += kMaxBlockColumns;
  }
}

void multiply_quantized_block(const QuantizedBlock& block) {
  HWY_ALIGN int32_t accumulators[kLargestBlockRows * kMaxBlockColumns];
  accumulate(block, accumulators);
  const int32_t* const done = accumulators;
  with_activation(block.out.epilogue.activation, [&block, done](auto kind) HWY_ATTR {
    if (block.float_accumulators) return finish_rows<kind(), Accumulators::fp32>(block, done);
    if (block.compensation) return finish_rows<kind(), Accumulators::int32_with_zero_points>(block, done);
    finish_rows<kind(), Accumulators::int32>(block, done);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/isa/thread_scratch_internal.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(multiply_quantized_block, nullptr);

}  // namespace

QuantizedGemm::QuantizedGemm(const QuantizedFormat& format, const float* bias, int64_t out, int64_t in,
                             const std::function<QuantizedChannel(int64_t, int32_t*)>& quantize_channel)
    : format_(format),
      out_(out),
      in_(in),
      k_groups_(format.k_groups(in)),
      panels_(ceil_div(out, format.panel.columns)),
      multiply_block_(&VITRAIL_DISPATCH(multiply_quantized_block)),
      weight_(zero_weights<int32_t>(columns() * k_groups_)),
      bias_(zero_weights<float>(columns())),
      scales_(zero_weights<float>(columns())) {
  if (format.is_int8()) compensation_ = zero_weights<int32_t>(columns());
  if (bias) std::copy_n(bias, out, bias_.get());
  parallel_for(0, out, 1 + 65536 / (in + 1), [&](int64_t first, int64_t last) {
    const int64_t width = format_.panel.columns, together = format_.panel.interleaved_groups;
    std::vector<int32_t> groups(static_cast<size_t>(k_groups_));
    for (int64_t c = first; c < last; ++c) {
      const QuantizedChannel channel = quantize_channel(c, groups.data());
      scales_[c] = channel.scale;
      if (compensation_) compensation_[c] = channel.compensation;
      int32_t* const column = weight_.get() + c / width * width * k_groups_ + c % width * together;
      for (int64_t g = 0; g < k_groups_; g += together) {
        for (int64_t i = 0; i < together; ++i) column[g * width + i] = groups[g + i];
      }
    }
  });
}

size_t QuantizedGemm::packed_bytes() const {
  const int64_t of_channel = k_groups_ + (compensation_ ? 3 : 2);  // the others are scale, bias and compensation
  return static_cast<size_t>(columns() * of_channel) * sizeof(int32_t);
}

// A small weight stays in the second-level cache and may be read more often.  Then blocks have few rows, so that their
// accumulators stay in the first.
QuantizedRows QuantizedGemm::layout_of(const LinearRows& rows) const {
  constexpr int64_t kSmallWeight = (256 << 10) / sizeof(int32_t);
  RowBlocking blocking = format_.row_blocking;
  if (columns() * k_groups_ <= kSmallWeight) blocking.max = blocking.few;
  return {rows.count, format_.is_int8() ? rows.two_term : TwoTermRows{}, blocking};
}

size_t QuantizedGemm::quantized_bytes(const QuantizedRows& rows) const {
  constexpr size_t kAlignment = 64;  // the correction's scratch follows
  const int64_t groups =
      first_quantized_row(format_.row_blocking.alignment) + rows.num_slots() * quantized_row_stride();
  const auto bytes = static_cast<size_t>(groups) * sizeof(int32_t);
  return round_up(bytes, kAlignment);
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

  const int32_t* const x = first_row(args.scratch);
  const int64_t width = format_.panel.columns;
  const BlockGrid grid{
      .rows = args.rows.count, .block_rows = rows.block_rows(), .panels = panels_, .panel_columns = width};
  const int64_t flops_per_panel = 2 * width * in_ * std::min(grid.rows, grid.block_rows);
  const int64_t grain =
      1 + 100'000 / (flops_per_panel + 1);  // these take twice as long as starting a loop on waiting threads
  for_each_output_block(grid, grain, [&](int64_t row, int64_t count, int64_t panel, int64_t panels) {
    const int64_t column = panel * width, columns = std::min(panels * width, out_ - column);
    RowBias row_bias = row_biases;
    if (row_bias.data) row_bias.data += column;
    multiply_block_({.x = x + rows.slot(row) * quantized_row_stride(),
                     .ldx = quantized_row_stride(),
                     .two_term = rows.two_term_from(row),
                     .panels = weight_.get() + column * k_groups_,
                     .k_groups = k_groups_,
                     .panel = format_.panel,
                     .microkernel = format_.microkernel,
                     .scales = scales_.get() + column,
                     .compensation = compensation_ ? compensation_.get() + column : nullptr,
                     .float_accumulators = format_.float_accumulators,
                     .bias = bias_.get() + column,
                     .row_bias = row_bias,
                     .first_row = row,
                     .out = output_block(args, row, count, column, columns)});
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

void QuantizedGemm::quantize_rows(const GemmArgs& args, const QuantizedRows& rows, int64_t first, int64_t last) const {
  int32_t* const quantized = first_row(args.scratch);
  // The weight is 0 where K groups have no value of x; cleared so that nothing uninitialised is read.
  const auto clear_padding = [this](int32_t* row) {
    std::fill(row + in_ / format_.values_per_group, row + k_groups_, 0);
  };
  float* const computed = args.row_source ? thread_scratch(in_) : nullptr;
  for (int64_t r = first; r < last; ++r) {
    if (computed) args.row_source->write(r, computed);
    const float* const x = computed ? computed : args.x.data + r * args.x.ld;
    int32_t* const high = quantized + rows.slot(r) * quantized_row_stride();
    clear_padding(high);
    const QuantizationParams params = format_.quantize_row(x, in_, format_.max_norm, high);
    store_metadata(high, params);
    if (!rows.has_low_term(r)) continue;
    int32_t* const low = quantized + rows.low_term_slot(r) * quantized_row_stride();
    clear_padding(low);
    store_metadata(low, format_.quantize_low_term(x, in_, params, high, low));
  }
}

}  // namespace vitrail::kernels
#endif

// SPDX-License-Identifier: Apache-2.0
// Kernels read nothing past the end of their operands: each operand ends where readable memory ends.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <stdexcept>

#include "tests/kernels/linear_problem.h"
#include "vitrail/kernels/attention/attention.h"
#include "vitrail/kernels/attention/token_merging.h"
#include "vitrail/kernels/gemm/weight_quantization_internal.h"
#include "vitrail/kernels/optimizer/weight_update.h"
#include "vitrail/kernels/rowwise/bf16_conversion.h"
#include "vitrail/kernels/rowwise/elementwise.h"
#include "vitrail/kernels/rowwise/exponentials.h"
#include "vitrail/kernels/rowwise/layer_norm.h"
#include "vitrail/kernels/rowwise/patchify.h"
#include "vitrail/kernels/rowwise/resample.h"
#include "vitrail/kernels/rowwise/rms_norm.h"
#include "vitrail/kernels/rowwise/rotary.h"
#include "vitrail/kernels/rowwise/row_sum_internal.h"
#include "vitrail/kernels/rowwise/softmax.h"

namespace vitrail::kernels {
namespace {

// Values whose last byte is the last one of a page; the next page cannot be read.
template <class T>
class LastOfPage {
 public:
  explicit LastOfPage(const std::vector<T>& values) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t bytes = values.size() * sizeof(T), readable = (bytes + page - 1) / page * page;
    mapped_ = readable + page;
    memory_ = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::runtime_error("mmap");
    auto* const end = static_cast<std::byte*>(memory_) + readable;
    if (::mprotect(end, page, PROT_NONE) != 0) throw std::runtime_error("mprotect");
    data_ = reinterpret_cast<T*>(end - bytes);
    if (bytes > 0) std::memcpy(data_, values.data(), bytes);
  }
  explicit LastOfPage(int64_t n) : LastOfPage(std::vector<T>(static_cast<size_t>(n), T(1))) {}
  ~LastOfPage() { ::munmap(memory_, mapped_); }
  LastOfPage(const LastOfPage&) = delete;
  LastOfPage& operator=(const LastOfPage&) = delete;
  T* get() const { return data_; }

 private:
  size_t mapped_;
  void* memory_;
  T* data_;
};

using Floats = LastOfPage<float>;

TEST(PageEnd, RowwiseKernelsReadNothingBeyondTheirRows) {
  testing::for_each_isa([](Isa) {
    for (const int64_t n : testing::kAwkwardLengths) {
      const Floats x(n), y(n), z(n), w(n), twice(2 * n);
      for (const Activation kind : {Activation::gelu, Activation::tanh}) {
        activate(kind, x.get(), y.get(), n);
        activation_backward(kind, x.get(), y.get(), z.get(), n);
        add_bias(kind, x.get(), y.get(), z.get(), 1, n);
      }
      silu_gate(twice.get(), 2 * n, y.get(), n, 1, n);
      add(x.get(), y.get(), z.get(), n);
      multiply(x.get(), y.get(), z.get(), n);
      sum_rows(x.get(), y.get(), 1, n, z.get());
      sum_rows(twice.get(), nullptr, 2, n, z.get());
      sum_of_rows(twice.get(), n, 2, n, 2, z.get());
      add_rows(twice.get(), n, 2, n, z.get());
      softmax(x.get(), y.get(), 1, n);
      exponentials(x.get(), y.get(), n);
      layer_norm(x.get(), n, y.get(), z.get(), 1e-6f, w.get(), n, 1, n);
      residual_layer_norm(x.get(), y.get(), z.get(), x.get(), y.get(), 1e-6f, w.get(), z.get(), 1, n);
      rms_norm(x.get(), n, y.get(), 1e-6f, w.get(), n, 1, n);
      if (n > 0) {
        layer_norm_backward(x.get(), y.get(), 1e-6f, z.get(), 1, n, w.get(), w.get(), z.get());
        rms_norm_backward(x.get(), y.get(), 1e-6f, z.get(), 1, n, w.get(), w.get());
      }
      const LastOfPage<BFloat16> narrow(n);
      round_to_bf16(x.get(), narrow.get(), n);
      widen_bf16(narrow.get(), y.get(), n);
      adamw(x.get(), y.get(), z.get(), w.get(), n, {.rate = 0.1});
      lamb_moments(x.get(), y.get(), z.get(), w.get(), n, {.rate = 0.1});
      lamb_apply(x.get(), y.get(), z.get(), n, 0.5, {.rate = 0.1});
      sgd(x.get(), y.get(), z.get(), n, {.rate = 0.1});
      lion(x.get(), y.get(), z.get(), n, {.rate = 0.1});
      lerp(x.get(), y.get(), n, 0.3);
      scale(x.get(), n, 0.5);
      sum_of_squares(x.get(), n);
      std::vector<int8_t> values(static_cast<size_t>(n));
      quantize_weight_row(x.get(), n, values.data());
    }
  });
}

TEST(PageEnd, RotaryReadsNothingBeyondItsRowsAndItsTable) {
  testing::for_each_isa([](Isa) {
    for (const int64_t half : testing::kAwkwardLengths) {
      const Floats x(3 * 2 * half), y(3 * 2 * half), table(2 * half);
      for (const RotaryPairs pairs : {RotaryPairs::halves, RotaryPairs::interleaved}) {
        rotary(RotaryArgs{.x = x.get(),
                          .y = y.get(),
                          .batch = 1,
                          .tokens = 1,
                          .heads = 1,
                          .head_dim = 2 * half,
                          .table = table.get(),
                          .pairs = pairs});
      }
    }
  });
}

TEST(PageEnd, ResamplingReadsNothingBeyondTheImage) {
  testing::for_each_isa([](Isa) {
    for (const int channels : {1, 3}) {
      for (int64_t width = 1; width <= 20; ++width) {
        for (const int64_t taps : {int64_t{1}, int64_t{3}, std::min<int64_t>(width, 9)}) {
          if (taps > width) continue;
          const LastOfPage<uint8_t> image(2 * width * channels);
          const int64_t count = width - taps + 1;
          std::vector<int64_t> firsts(static_cast<size_t>(count)), lengths(firsts.size(), taps);
          std::iota(firsts.begin(), firsts.end(), int64_t{0});
          std::vector<int32_t> weights(static_cast<size_t>(count * taps),
                                       (1 << kResampleBits) / static_cast<int>(taps));
          const ResampleAxis axis{count, taps, firsts.data(), lengths.data(), weights.data()};
          std::vector<uint8_t> out(static_cast<size_t>(2 * count * channels), uint8_t{9});
          resample_x({image.get(), 2, width * channels, width * channels, channels}, axis, out.data());
          EXPECT_EQ(out, std::vector<uint8_t>(out.size(), 1)) << width << " pixels, " << taps << " taps";
          const LastOfPage<uint8_t> column(width * 3);  // `width` rows of three bytes
          std::vector<uint8_t> below(static_cast<size_t>(count * 2));
          resample_y({column.get(), width, 3, 3, 1}, 1, 2, axis, below.data());
          EXPECT_EQ(below, std::vector<uint8_t>(below.size(), 1));
        }
      }
    }
  });
}

TEST(PageEnd, LinearLayersReadNothingBeyondTheirOperands) {
  testing::for_each_isa([](Isa) {
    for (const int64_t in : {1, 3, 8, 19, 64, 65}) {
      for (const int64_t out : {1, 7, 16, 33}) {
        const Floats weight(out * in), bias(out), x(7 * in), residual(7 * out), factors(out), y(7 * out);
        for (const Precision precision : {Precision::fp32, Precision::half, Precision::int8}) {
          const PackedLinear linear(weight.get(), bias.get(), out, in, precision);
          for (const Activation kind : {Activation::none, Activation::gelu}) {
            testing::Scratch scratch(linear.scratch_bytes({.count = 7}));
            linear.run({x.get(), in}, {y.get(), out}, {.count = 7}, {kind, {residual.get(), out, factors.get()}},
                       scratch.aligned());
          }
        }
        gemm(false, true, 7, out, in, x.get(), in, weight.get(), in, true, y.get(), out);
      }
    }
  });
}

TEST(PageEnd, AttentionReadsNothingBeyondItsHeads) {
  testing::for_each_isa([](Isa) {
    for (const int64_t queries : {1, 5, 13}) {
      for (const int64_t keys : {1, 7, 16, 33}) {
        for (const int64_t dim : {1, 3, 8, 17}) {
          const Floats q(queries * dim), k(keys * dim), v(keys * dim), bias(queries * keys), out(queries * dim);
          const Floats grad(queries * dim), grad_q(queries * dim), grad_k(keys * dim), grad_v(keys * dim);
          const Floats weights(queries * keys), grad_scores(queries * keys);
          AttentionArgs args{.batch = 1,
                             .heads = 1,
                             .queries = queries,
                             .keys = keys,
                             .head_dim = dim,
                             .q = {q.get(), 0, 0, dim},
                             .k = {k.get(), 0, 0, dim},
                             .v = {v.get(), 0, 0, dim},
                             .out = {out.get(), 0, 0, dim},
                             .bias = {bias.get(), 0, 0, keys},
                             .weights = weights.get()};
          attention(args);
          // Equal keys have equal weights, and values of 1 have the mean 1.
          for (int64_t i = 0; i < queries * dim; ++i) ASSERT_NEAR(out.get()[i], 1, 1e-5);
          args.weights = nullptr;
          attention_backward(AttentionGradArgs{.forward = args,
                                               .grad = {grad.get(), 0, 0, dim},
                                               .grad_q = {grad_q.get(), 0, 0, dim},
                                               .grad_k = {grad_k.get(), 0, 0, dim},
                                               .grad_v = {grad_v.get(), 0, 0, dim},
                                               .grad_scores = grad_scores.get()});
          for (int64_t i = 0; i < queries * keys; ++i) ASSERT_NEAR(grad_scores.get()[i], 0, 1e-5);
          // Each key has 1 / keys of the gradient of every query.
          const double share = static_cast<double>(queries) / static_cast<double>(keys);
          for (int64_t i = 0; i < keys * dim; ++i) ASSERT_NEAR(grad_v.get()[i], share, 1e-5 * share);
        }
      }
    }
  });
}

TEST(PageEnd, RelativePositionsReadNothingBeyondTheirTables) {
  testing::for_each_isa([](Isa) {
    for (const auto& [height, width] : {std::pair<int64_t, int64_t>{1, 1}, {2, 5}, {5, 3}, {1, 17}}) {
      for (const int64_t dim : {1, 3, 8, 17}) {
        const int64_t tokens = height * width;
        const Floats q(tokens * dim), out(tokens * dim), rows((2 * height - 1) * dim), columns((2 * width - 1) * dim);
        attention(AttentionArgs{.batch = 1,
                                .heads = 1,
                                .queries = tokens,
                                .keys = tokens,
                                .head_dim = dim,
                                .q = {q.get(), 0, 0, dim},
                                .k = {q.get(), 0, 0, dim},
                                .v = {q.get(), 0, 0, dim},
                                .out = {out.get(), 0, 0, dim},
                                .positions = {height, width, rows.get(), columns.get()}});
        for (int64_t i = 0; i < tokens * dim; ++i) ASSERT_NEAR(out.get()[i], 1, 1e-5);
      }
    }
  });
}

TEST(PageEnd, TokenMergingAndPatchesReadNothingBeyondTheirTokens) {
  testing::for_each_isa([](Isa) {
    for (const int64_t tokens : {2, 5, 9, 34}) {
      for (const int64_t dim : {1, 3, 8}) {
        const int64_t merged = max_mergeable(tokens, 0);
        const Floats x(tokens * 3), keys(tokens * dim), sizes(tokens), out((tokens - merged) * 3);
        const Floats out_sizes(tokens - merged), log_sizes(tokens - merged);
        merge_tokens({.batch = 1,
                      .tokens = tokens,
                      .width = 3,
                      .merged = merged,
                      .heads = 1,
                      .head_dim = dim,
                      .keys = {keys.get(), 0, 0, dim},
                      .x = x.get(),
                      .sizes = sizes.get(),
                      .out = out.get(),
                      .out_sizes = out_sizes.get(),
                      .out_log_sizes = log_sizes.get()});
        for (int64_t i = 0; i < (tokens - merged) * 3; ++i) ASSERT_NEAR(out.get()[i], 1, 1e-6);
      }
    }
    const Floats image(2 * 5 * 7), rows(2 * 2 * 2 * 2 * 3);
    patchify(image.get(), 1, 2, 5, 7, 2, 3, rows.get());
  });
}

}  // namespace
}  // namespace vitrail::kernels

#pragma once
// What PackedLinear is made of: one way to pack a weight and to multiply with it, chosen when the weight is packed.
// Private to kernels, its tests and benchmarks.  A product in another precision is one more of these.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "vitrail/kernels/linear.h"
#include "vitrail/kernels/word_panel.h"

namespace vitrail::kernels {

struct ProductArgs {
  const float* x;
  int64_t ldx;
  float* y;
  int64_t ldy, rows;
  Activation activation;
  Residual residual;
  std::byte* scratch;
  int64_t fine_every = 0;            // rows 0, fine_every, …: see PackedLinear
  const WeightRest* rest = nullptr;  // where takes_rest()
  std::byte* memory_of_rest = nullptr;
};

// A weight's rows in 8 bits: from numbers of fp32 [out, in], which are rounded, or whole numbers with a step for each
// row.
class Int8Rows {
 public:
  Int8Rows(const float* weight) : weight_(weight) {}  // NOLINT(google-explicit-constructor): the usual one
  Int8Rows(const int8_t* numbers, const float* steps) : numbers_(numbers), steps_(steps) {}

  // Row r's numbers [in] and its step; `round` as weight_numbers (int8_weight.h).
  float take(int64_t r, int64_t in, float (*round)(const float*, int64_t, int8_t*), int8_t* numbers) const {
    if (weight_) return round(weight_ + r * in, in, numbers);
    std::copy_n(numbers_ + r * in, in, numbers);
    return steps_[r];
  }

 private:
  const float* weight_ = nullptr;
  const int8_t* numbers_ = nullptr;
  const float* steps_ = nullptr;
};

class PackedProduct {
 public:
  virtual ~PackedProduct() = default;
  virtual void run(const ProductArgs& args) const = 0;
  virtual void prepare(int64_t rows, int64_t ldx, int64_t ldy, Activation activation) const = 0;
  virtual size_t scratch_bytes(int64_t rows, int64_t fine_every) const = 0;
  virtual size_t packed_bytes() const = 0;
  virtual bool takes_rest() const { return false; }
  virtual bool has_own_loops() const { return true; }
};

// All take weight [out, in] row-major and bias [out] or null, and keep neither.
std::unique_ptr<PackedProduct> make_plain_product(const float* weight, const float* bias, int64_t out, int64_t in);
// By Highway kernels, under the instruction set that is active now; not for scalar.
std::unique_ptr<PackedProduct> make_tile_product(const float* weight, const float* bias, int64_t out, int64_t in);
// By oneDNN; null when it has no fast implementation that takes one layout for every number of rows.
// Not without oneDNN.
std::unique_ptr<PackedProduct> make_onednn_product(const float* weight, const float* bias, int64_t out, int64_t in);
// In 16 bits (see int16_product.cpp), with int16_sums() or what gives the same.
std::unique_ptr<PackedProduct> make_int16_tile_product(const float* weight, const float* bias, int64_t out, int64_t in,
                                                       WordSums sums);
// In 8 bits: the reference (plain_int8_product.cpp), and Highway kernels (int8_product.cpp) with the same whole
// numbers; for a weight that byte_sums() is too narrow for, wide_byte_sums() takes its place.
std::unique_ptr<PackedProduct> make_plain_int8_product(const Int8Rows& weight, const float* bias, int64_t out,
                                                       int64_t in);
std::unique_ptr<PackedProduct> make_int8_tile_product(const Int8Rows& weight, const float* bias, int64_t out,
                                                      int64_t in, WordSums sums);

}  // namespace vitrail::kernels

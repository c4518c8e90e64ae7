// SPDX-License-Identifier: Apache-2.0
#pragma once
// The weights of a model's linear layers, packed once and shared by all programs.
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "vitrail/kernels/gemm/convolution.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::infer {

// Not thread-safe: the Executor that owns it packs under its lock.  The packed weights themselves are immutable.
class PackedWeights {
 public:
  using Exceptions = std::map<const Storage*, kernels::Precision>;  // by the storage of the original weight
  using Retained = std::set<const Storage*>;

  struct Packed {
    std::shared_ptr<const kernels::PackedLinear> weight;
    std::shared_ptr<const kernels::PackedLinear> correction;  // int8, packed with the bias; null: none
  };

  // Packs weights in `precision`, except those in `exceptions`.  The memory of those in `retained` is not released.
  explicit PackedWeights(kernels::Precision precision = kernels::Precision::fp32, Exceptions exceptions = {},
                         Retained retained = {})
      : precision_(precision), exceptions_(std::move(exceptions)), retained_(std::move(retained)) {}

  // Returns the packed form of weight [out, in], floating or quantised, with bias [out] or undefined.  The first call
  // packs the weight and releases its memory (it becomes a meta tensor) unless it is retained.  Later calls find it by
  // storage, offset and shape.
  Packed get(const Tensor& weight, const Tensor& bias);
  // The same for a 3×3 convolution with this stride, whose weight is [out, 9 · channels] in (channel, dy, dx) order.
  std::shared_ptr<const kernels::PackedConvolution> convolution(const Tensor& weight, const Tensor& bias,
                                                                int64_t stride);

  // The memory of a constant is not released from now on.
  void retain(const Tensor& constant) { retained_.insert(constant.storage().get()); }

  size_t bytes() const { return bytes_; }

 private:
  using Key = std::tuple<const Storage*, int64_t, int64_t, int64_t>;  // storage, offset, out, in
  struct Entry {
    std::shared_ptr<Storage> original;  // held, so that no other storage gets its address
    Packed packed;
    std::shared_ptr<const kernels::PackedConvolution> convolution;  // in its place
  };
  kernels::Precision precision_of(const Tensor& weight) const;
  Packed pack(const Tensor& weight, const Tensor& bias) const;
  std::shared_ptr<const kernels::PackedConvolution> pack_convolution(const Tensor& weight, const Tensor& bias,
                                                                     int64_t stride) const;
  void release(const Tensor& weight);  // unless it is retained

  kernels::Precision precision_;
  Exceptions exceptions_;
  Retained retained_;
  std::map<Key, Entry> entries_;
  size_t bytes_ = 0;
};

}  // namespace vitrail::infer

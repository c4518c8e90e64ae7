// SPDX-License-Identifier: Apache-2.0
#pragma once
// The weights of a model's linear layers, packed once and shared by all its programs.
#include <cstdint>
#include <map>
#include <memory>

#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::infer {

// Not thread-safe: the Session that owns it packs under its lock.  What it has handed out is immutable.
class PackedWeights {
 public:
  using Exceptions = std::map<const Storage*, kernels::Precision>;

  struct Packed {
    std::shared_ptr<const kernels::PackedLinear> weight;
    std::shared_ptr<const kernels::PackedLinear> correction;  // in int8, with the bias; null: none
  };

  // Packs for this precision, and the weights in some storages for another.
  explicit PackedWeights(kernels::Precision precision = kernels::Precision::fp32, Exceptions exceptions = {})
      : precision_(precision), exceptions_(std::move(exceptions)) {}

  // The packed form of weight [out, in], floating or quantised, with bias [out] or undefined.  The first call packs and
  // gives the original's memory back (it becomes a meta tensor); later calls find it by storage, offset and shape.
  Packed get(const Tensor& weight, const Tensor& bias);

  size_t bytes() const { return bytes_; }

 private:
  struct Key {
    const Storage* storage;
    int64_t offset, out, in;
    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    std::shared_ptr<Storage> original;  // keeps the identity unique
    Packed packed;
  };
  Packed pack(const Tensor& weight, const Tensor& bias) const;

  kernels::Precision precision_;
  Exceptions exceptions_;
  std::map<Key, Entry> entries_;
  size_t bytes_ = 0;
};

}  // namespace vitrail::infer

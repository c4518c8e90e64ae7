// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which gradients travel together.
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::dist {

struct Bucket {
  struct Member {
    size_t parameter;
    int64_t offset, count;  // elements within the bucket
  };
  DType dtype = DType::f32;
  int64_t count = 0;  // elements
  std::vector<Member> members;
  Tensor data;  // [count], where the members are packed
};

// Parameters from the last to the first; a bucket ends when it holds `bytes`, or before another dtype.  Throws Error
// for a size below 1 and parameters that are neither f32 nor f64.
std::vector<Bucket> buckets_of(const std::vector<Tensor>& parameters, int64_t bytes);

}  // namespace vitrail::dist

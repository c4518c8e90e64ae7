// SPDX-License-Identifier: Apache-2.0
#pragma once
// Partition of the gradients into buckets, each reduced by one all-reduce (Li et al. 2020, "PyTorch Distributed",
// section 3.2.2).
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::dist {

struct Bucket {
  struct Member {
    size_t parameter;       // index of the parameter
    int64_t offset, count;  // elements in the bucket's buffer
  };
  DType dtype = DType::f32;
  int64_t count = 0;  // elements of all members
  std::vector<Member> members = {};
  Tensor buffer = {};  // [count]: the packed gradients
};

// Assigns the parameters to buckets from the last to the first, because a backward pass completes their gradients in
// about this order.  A bucket is full when it holds at least `bytes`; a parameter of another dtype starts a new bucket.
// Throws Error if bytes < 1 or a parameter is neither f32 nor f64.
std::vector<Bucket> make_buckets(const std::vector<Tensor>& parameters, int64_t bytes);

}  // namespace vitrail::dist

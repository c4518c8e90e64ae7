// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/error.h"
#include "vitrail/dist/buckets_internal.h"

namespace vitrail::dist {

std::vector<Bucket> make_buckets(const std::vector<Tensor>& parameters, int64_t bytes) {
  if (bytes < 1) throw Error("gradient reducer", "buckets of at least one byte", str(bytes));
  std::vector<Bucket> buckets;
  bool open = false;  // whether the last bucket has room
  for (size_t i = parameters.size(); i-- > 0;) {
    const DType dtype = parameters[i].dtype();
    if (dtype != DType::f32 && dtype != DType::f64) {
      throw Error("gradient reducer", "parameters in f32 or f64", name_of(dtype));
    }
    if (!open || buckets.back().dtype != dtype) buckets.push_back({.dtype = dtype});
    Bucket& bucket = buckets.back();
    bucket.members.push_back({i, bucket.count, parameters[i].numel()});
    bucket.count += parameters[i].numel();
    open = bucket.count * static_cast<int64_t>(size_of(dtype)) < bytes;
  }
  // A bucket with one member usually reduces its gradient in place, but needs a buffer of zeros if there is no
  // gradient.
  for (Bucket& bucket : buckets) bucket.buffer = Tensor::empty({bucket.count}, bucket.dtype);
  return buckets;
}

}  // namespace vitrail::dist

#include "vitrail/infer/packed_weights.h"

namespace vitrail::infer {

std::shared_ptr<const kernels::PackedLinear> PackedWeights::get(const Tensor& weight, const Tensor& bias) {
  const Key key{weight.storage().get(), weight.offset(), weight.size(0), weight.size(1)};
  const auto found = entries_.find(key);
  if (found != entries_.end()) return found->second.packed;
  const Tensor dense = weight.to(DType::f32).contiguous(),
               offset = bias.defined() ? bias.to(DType::f32).contiguous() : bias;
  const auto exception = exceptions_.find(weight.storage().get());
  auto packed = std::make_shared<const kernels::PackedLinear>(
      dense.data<float>(), offset.defined() ? offset.data<float>() : nullptr, weight.size(0), weight.size(1),
      exception == exceptions_.end() ? precision_ : exception->second);
  bytes_ += packed->packed_bytes();
  entries_[key] = {weight.storage(), packed};
  weight.storage()->release();
  return packed;
}

}  // namespace vitrail::infer

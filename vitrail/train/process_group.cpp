// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/train/process_group_internal.h"

namespace vitrail::train {

ProcessGroup::ProcessGroup(std::shared_ptr<dist::Communicator> communicator)
    : communicator_(communicator ? std::move(communicator) : dist::single_process()) {}

void ProcessGroup::sum(std::vector<double>& values) const {
  communicator_->all_reduce_sum(values.data(), static_cast<int64_t>(values.size()));
}

bool ProcessGroup::any(bool here) const {
  double count = here ? 1 : 0;
  communicator_->all_reduce_sum(&count, 1);
  return count > 0;
}

std::string ProcessGroup::tell(std::string text, int from) const {
  uint64_t size = text.size();
  communicator_->broadcast(&size, sizeof size, from);
  text.resize(size);
  communicator_->broadcast(text.data(), size, from);
  return text;
}

std::string ProcessGroup::first_text(const std::string& here) const {
  if (size() == 1) return here;
  std::vector<double> has(static_cast<size_t>(size()));
  has[static_cast<size_t>(rank())] = here.empty() ? 0 : 1;
  sum(has);
  const auto first = std::find(has.begin(), has.end(), 1.0);
  if (first == has.end()) return "";
  const int from = static_cast<int>(first - has.begin());
  return str("on process ", from, ", ", tell(here, from));
}

void ProcessGroup::copy_from_leader(const std::vector<nn::NamedTensor>& tensors) const {
  if (size() == 1) return;
  for (const nn::NamedTensor& named : tensors) {
    const Tensor& tensor = named.tensor;
    if (!tensor.is_contiguous()) throw Error("broadcast", "a contiguous tensor", named.name);
    communicator_->broadcast(tensor.raw(), static_cast<size_t>(tensor.numel()) * size_of(tensor.dtype()), 0);
  }
}

}  // namespace vitrail::train

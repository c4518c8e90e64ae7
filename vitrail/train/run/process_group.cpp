// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/train/run/process_group_internal.h"

namespace vitrail::train {

ProcessGroup::ProcessGroup(std::shared_ptr<dist::Communicator> communicator)
    : communicator_(communicator ? std::move(communicator) : dist::single_process()) {}

void ProcessGroup::all_reduce_sum(std::vector<double>& values) const {
  communicator_->all_reduce_sum(values.data(), static_cast<int64_t>(values.size()));
}

bool ProcessGroup::any(bool local) const {
  double count = local ? 1 : 0;
  communicator_->all_reduce_sum(&count, 1);
  return count > 0;
}

std::string ProcessGroup::broadcast_text(std::string text, int root) const {
  uint64_t size = text.size();
  communicator_->broadcast(&size, sizeof size, root);
  text.resize(size);
  communicator_->broadcast(text.data(), size, root);
  return text;
}

std::string ProcessGroup::first_nonempty_text(const std::string& local) const {
  if (size() == 1) return local;
  std::vector<double> has_text(static_cast<size_t>(size()));
  has_text[static_cast<size_t>(rank())] = local.empty() ? 0 : 1;
  all_reduce_sum(has_text);
  const auto first = std::find(has_text.begin(), has_text.end(), 1.0);
  if (first == has_text.end()) return "";
  const int root = static_cast<int>(first - has_text.begin());
  return str("on process ", root, ", ", broadcast_text(local, root));
}

void ProcessGroup::broadcast_tensors(const std::vector<nn::NamedTensor>& tensors) const {
  if (size() == 1) return;
  for (const nn::NamedTensor& named : tensors) {
    const Tensor& tensor = named.tensor;
    if (!tensor.is_contiguous()) throw Error("broadcast", "a contiguous tensor", named.name);
    communicator_->broadcast(tensor.raw(), static_cast<size_t>(tensor.numel()) * size_of(tensor.dtype()), 0);
  }
}

}  // namespace vitrail::train

// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/pytorch/state_dict_internal.h"

#include <algorithm>
#include <unordered_set>

#include "vitrail/base/error.h"

namespace vitrail::weights {
namespace {

using Kind = PickleValue::Kind;

// Averaged weights (EMA) come first, because they are the ones used for evaluation.
constexpr std::string_view kWrapperKeys[] = {"state_dict_ema",   "model_ema", "state_dict", "model",
                                             "model_state_dict", "module",    "teacher",    "student"};
constexpr int kMaxDepth = 4;

bool has_tensors(const PickleValue& dict) {
  for (size_t i = 1; i < dict.items.size(); i += 2) {
    if (dict.items[i]->kind == Kind::tensor) return true;
  }
  return false;
}

const PickleValue* wrapped_dict(const PickleValue& dict) {
  for (const std::string_view key : kWrapperKeys) {
    const PickleValue* inner = dict.find(key);
    if (inner != nullptr && inner->kind == Kind::dict && !inner->items.empty()) return inner;
  }
  return nullptr;
}

// The number of storage elements that a tensor spans from its offset.
int64_t span_of(const PickledTensor& tensor) {
  int64_t last = 0;
  for (int i = 0; i < tensor.shape.rank(); ++i) last += (tensor.shape[i] - 1) * tensor.strides[i];
  return last + 1;
}

}  // namespace

NamedPickledTensors find_tensors(const PickleValue& root, const std::string& where) {
  const PickleValue* dict = &root;
  for (int depth = 0; dict->kind == Kind::dict && depth < kMaxDepth; ++depth) {
    const PickleValue* inner = wrapped_dict(*dict);
    if (inner == nullptr) break;
    dict = inner;
  }
  if (dict->kind != Kind::dict || !has_tensors(*dict)) {
    throw Error(where, "a dict of tensors, or one under a key such as \"state_dict\" or \"model\"",
                name_of(dict->kind));
  }
  NamedPickledTensors tensors;
  std::unordered_set<std::string_view> seen;
  for (size_t i = dict->items.size(); i >= 2; i -= 2) {  // backwards: the last of equal keys wins, as in Python
    const PickleValue &key = *dict->items[i - 2], &value = *dict->items[i - 1];
    if (key.kind != Kind::string || !seen.insert(key.text).second || value.kind != Kind::tensor) continue;
    tensors.emplace_back(std::string(key.text), value.tensor);
  }
  std::reverse(tensors.begin(), tensors.end());
  return tensors;
}

TensorInfo describe(const std::string& name, const PickledTensor& tensor) {
  return {name, tensor.type.dtype, tensor.shape, tensor.type.unsupported};
}

Tensor make_tensor(const FileBytes& bytes, uint64_t begin, uint64_t size, const PickledTensor& tensor) {
  if (!tensor.type.unsupported.empty()) {
    throw Error(bytes.where, "f64, f32, f16, bf16, i64, i32, i8, u8 or bool", tensor.type.unsupported);
  }
  const PickledStorage& storage = tensor.storage;
  const uint64_t end = static_cast<uint64_t>(storage.offset + storage.count);
  if (end > size / storage.type.bytes) {
    throw Error(bytes.where, str(end, " elements of ", storage.type.bytes, " bytes in a storage"), str(size, " bytes"));
  }
  if (tensor.shape.numel() == 0) return Tensor::empty(tensor.shape, tensor.type.dtype);
  const uint64_t first = begin + static_cast<uint64_t>(storage.offset) * storage.type.bytes +
                         static_cast<uint64_t>(tensor.offset) * tensor.type.bytes;
  const Tensor flat = bytes.tensor(first, tensor.type.dtype, {span_of(tensor)});
  return Tensor(flat.storage(), tensor.type.dtype, tensor.shape, tensor.strides, 0);
}

}  // namespace vitrail::weights

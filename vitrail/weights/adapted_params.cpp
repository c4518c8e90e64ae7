// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/adapted_params_internal.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/weights/finite_check_internal.h"
#include "vitrail/weights/model_prefixes_internal.h"

namespace vitrail::weights {
namespace {

bool ends_at_component(const std::string& name, const std::string& end) {
  return name == end || name.ends_with("." + end);
}

// The checkpoint's name of a tensor; that of the adapter if the checkpoint has none.
std::string key_of(const std::string& name, const Checkpoint& checkpoint) {
  if (checkpoint.has(name)) return name;
  std::vector<std::string> found;
  for (const std::string& key : checkpoint.names()) {
    if (ends_at_component(key, name) || ends_at_component(name, key)) found.push_back(key);
  }
  return found.size() == 1 ? found.front() : name;
}

Tensor rows_of(const Tensor& tensor, const KeyRule& rule) {
  const int64_t rows = tensor.size(0) / rule.cuts;
  return tensor.narrow(0, rule.first * rows, (rule.last - rule.first) * rows).contiguous();
}

void require_plain(const KeyRule* rule, const std::string& name, const std::string& where) {
  if (!rule || (!rule->rearrange && rule->skip == 0 && rule->rows == 0)) return;
  throw Error(where, "an adapter for weights that are laid out as PyTorch's linear layers", "one for " + name);
}

}  // namespace

NativeAdapter native_adapter(const LoraAdapter& adapter, const Checkpoint& checkpoint, const KeyMap& map) {
  NativeAdapter native;
  for (const auto& [name, part] : adapter.parts) {
    for (const KeyMatch& match : map.match_all(key_of(name, checkpoint))) {
      require_plain(match.rule, name, adapter.path);
      NativeAdapter::Part own{part};
      if (match.rule && match.rule->cuts > 1) own.part.b = rows_of(part.b, *match.rule);
      if (match.rule) own.index = match.rule->part, own.count = match.rule->parts;
      if (!match.dropped()) native.parts.emplace(match.native, own);
    }
  }
  for (const auto& [name, tensor] : adapter.tensors) {
    const KeyMatch match = map.match(key_of(name, checkpoint));
    require_plain(match.rule, name, adapter.path);
    if (match.rule && (match.rule->cuts > 1 || match.rule->parts > 1))
      throw Error(adapter.path, "parameters of their own instead of the model's", name + ", a part of one");
    native.tensors[match.native] = tensor;
  }
  return native;
}

bool AdaptedParams::has(const std::string& path) const {
  return params_.has(path) || (adapter_ && adapter_->tensors.contains(path));
}

Tensor AdaptedParams::replaced(const std::string& path, const Shape& shape) {
  // A copy: a session releases the memory of its weights, and the adapter may be read again.
  const Tensor tensor = adapter_->tensors.at(path).to(DType::f32).clone();
  params_.leave_out(path);
  note_finite(path, tensor);
  if (tensor.shape() == shape) return tensor;
  problems_.push_back(str(path, ": expected ", shape, ", got ", tensor.shape()));
  return Tensor::empty(shape, DType::f32, Device::meta);
}

void AdaptedParams::note_finite(const std::string& path, const Tensor& tensor) {
  if (const auto at = first_non_finite(tensor))
    problems_.push_back(str(path, ": expected finite numbers, got a NaN or an infinity at element ", *at));
}

Tensor AdaptedParams::get(const std::string& path, const Shape& shape, const Initializer& init) {
  if (!adapter_) return params_.get(path, shape, init);
  taken_.insert(path);
  if (adapter_->tensors.contains(path)) return replaced(path, shape);
  Tensor tensor = params_.get(path, shape, init);
  const auto [first, last] = adapter_->parts.equal_range(path);
  if (first == last || tensor.is_meta()) return tensor;
  if (tensor.quantized()) {
    problems_.push_back(path + ": expected floating-point weights under the adapter, got int8");
    return tensor;
  }
  const Tensor adapted = tensor.to(DType::f32).clone();
  for (auto item = first; item != last; ++item) {
    const NativeAdapter::Part& part = item->second;
    const int64_t rows = adapted.size(0) / part.count;
    const Tensor of_part = adapted.narrow(0, part.index * rows, rows);
    try {
      of_part.copy_(add_lora_part(of_part.contiguous(), part.part));
    } catch (const Error& error) {
      problems_.push_back(str(path, ": ", error.what()));
    }
  }
  note_finite(path, adapted);
  return adapted;
}

void AdaptedParams::finish() {
  params_.finish();
  if (!adapter_) return;
  std::set<std::string> unused;
  for (const auto& [path, part] : adapter_->parts) unused.insert(path);
  for (const auto& [path, tensor] : adapter_->tensors) unused.insert(path);
  for (const std::string& path : taken_) unused.erase(path);
  if (!unused.empty()) problems_.push_back(str("not in the model: ", quoted_list({unused.begin(), unused.end()})));
  if (problems_.empty()) return;
  std::string text = where_ + ": the adapter does not fit the model:";
  for (const std::string& problem : problems_) text += "\n  " + problem;
  throw Error(text);
}

}  // namespace vitrail::weights

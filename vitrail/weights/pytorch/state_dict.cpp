// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/pytorch/state_dict_internal.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <unordered_set>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/weights/model_prefixes_internal.h"

namespace vitrail::weights {
namespace {

using Kind = PickleValue::Kind;

// Averaged weights (EMA) come first, because they are the ones used for evaluation.
constexpr std::string_view kWrapperKeys[] = {"state_dict_ema",   "model_ema", "state_dict", "model",
                                             "model_state_dict", "module",    "teacher",    "student"};
constexpr int kMaxDepth = 4;
constexpr size_t kMaxCandidates = 1 << 15;  // optimisers have a dict per parameter

bool has_tensors(const PickleValue& dict) {
  for (size_t i = 1; i < dict.items.size(); i += 2) {
    if (dict.items[i]->kind == Kind::tensor) return true;
  }
  return false;
}

bool is_module(const PickleValue& value) {
  return value.kind == Kind::object && value.state != nullptr && value.state->find("_parameters") != nullptr;
}

// A dict of the checkpoint that may be the state dict, and the keys that lead to it.
struct Candidate {
  const PickleValue* dict;
  std::string path;
  int depth;
  const PickleValue* parent = nullptr;
  bool is_empty = false;  // an average of nothing yet
};

// Dicts and modules inside containers, the outer ones first.
class Search {
 public:
  explicit Search(const PickleValue& root) {
    visit(root, "", 0, nullptr);
    for (size_t i = 0; i < found_.size() && found_.size() < kMaxCandidates; ++i) expand(Candidate(found_[i]));
  }

  const std::vector<Candidate>& all() const { return found_; }
  const std::vector<Candidate>& modules() const { return modules_; }

 private:
  void visit(const PickleValue& value, const std::string& path, int depth, const PickleValue* parent) {
    if (depth > kMaxDepth || !seen_.insert(&value).second) return;
    if (is_module(value)) modules_.push_back({&value, path, depth});
    const bool container = value.has_entries() || value.kind == Kind::list || value.kind == Kind::tuple;
    if (container && !value.items.empty()) found_.push_back({&value, path, depth, parent});
  }

  void expand(const Candidate& candidate) {
    const auto& items = candidate.dict->items;
    const std::string prefix = candidate.path.empty() ? "" : candidate.path + "/";
    if (!candidate.dict->has_entries()) {
      for (size_t i = 0; i < items.size(); ++i) visit(*items[i], str(prefix, i), candidate.depth + 1, candidate.dict);
      return;
    }
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      if (items[i]->kind != Kind::string) continue;
      visit(*items[i + 1], str(prefix, items[i]->text), candidate.depth + 1, candidate.dict);
    }
  }

  std::vector<Candidate> found_, modules_;
  std::unordered_set<const PickleValue*> seen_;
};

std::vector<std::string> names_in(const PickleValue& dict) {
  std::vector<std::string> names;
  for (size_t i = 0; dict.has_entries() && i + 1 < dict.items.size(); i += 2) {
    const Kind kind = dict.items[i + 1]->kind;
    if (dict.items[i]->kind != Kind::string || (kind != Kind::tensor && kind != Kind::object)) continue;
    names.emplace_back(dict.items[i]->text);
  }
  return names;
}

std::string_view last_key(const Candidate& candidate) {
  return std::string_view(candidate.path).substr(candidate.path.rfind('/') + 1);
}

size_t wrapper_rank(const Candidate& candidate) {
  return static_cast<size_t>(std::ranges::find(kWrapperKeys, last_key(candidate)) - std::begin(kWrapperKeys));
}

// Whether "n_averaged" of a dict is 0, as a number (Lightning) or a tensor (torch.optim.swa_utils).
bool has_averaged_nothing(const PickleValue& dict, const TensorReader& read) {
  const PickleValue* const count = dict.has_entries() ? dict.find(kAveragedCount) : nullptr;
  if (count == nullptr) return false;
  if (count->kind == Kind::integer) return count->integer == 0;
  if (count->kind != Kind::tensor || count->tensor->shape.numel() != 1) return false;
  return is_zero_count([&] { return read(*count->tensor); });
}

// The count is in the average's own dict, or beside a dict that is called an average.
bool is_empty_average(const Candidate& candidate, const TensorReader& read) {
  if (has_averaged_nothing(*candidate.dict, read)) return true;
  return candidate.parent != nullptr && is_average(last_key(candidate)) &&
         has_averaged_nothing(*candidate.parent, read);
}

// The dicts with a built-in family's keys, in the order of use.
std::vector<Candidate> recognised_dicts(const Search& search, const TensorReader& read) {
  std::vector<Candidate> known;
  for (const Candidate& candidate : search.all()) {
    if (is_optimizer_state(candidate.path)) continue;
    if (find_model_prefixes(names_in(*candidate.dict)).empty()) continue;
    known.push_back(candidate);
    known.back().is_empty = is_empty_average(candidate, read);
  }
  std::ranges::stable_sort(known, {}, [](const Candidate& candidate) {
    return std::tuple(candidate.is_empty, use_order(candidate.path), wrapper_rank(candidate));
  });
  return known;
}

// Says which of several state dicts is used.
void say_choice(const std::vector<Candidate>& known, size_t choice, const std::string& where) {
  std::vector<std::string> others, empty_averages;
  for (size_t i = 0; i < known.size(); ++i) {
    if (i != choice) others.push_back(known[i].path);
    if (known[i].is_empty) empty_averages.push_back(known[i].path);
  }
  if (others.empty()) return;
  warn(str(where, ": uses the weights under ", quoted_list({known[choice].path}), "; the file also has weights under ",
           quoted_list(others), empty_averages_text(empty_averages)));
}

// For key maps of the user: the dict under a common key, else the one with the most tensors.
const PickleValue* unknown_dict(const Search& search) {
  const Candidate* best = nullptr;
  const auto order = [](const Candidate& candidate) {
    return std::pair(wrapper_rank(candidate), -static_cast<std::ptrdiff_t>(candidate.dict->items.size()));
  };
  for (const Candidate& candidate : search.all()) {
    if (!candidate.dict->has_entries() || !has_tensors(*candidate.dict) || is_optimizer_state(candidate.path)) continue;
    if (best == nullptr || order(candidate) < order(*best)) best = &candidate;
  }
  return best == nullptr ? nullptr : best->dict;
}

[[noreturn]] void fail_without_dict(const PickleValue& root, const Search& search, const std::string& where) {
  const std::string advice = "; save its weights instead: torch.save(model.state_dict(), \"weights.pth\")";
  if (!search.modules().empty()) {
    const Candidate& module = search.modules().front();
    throw Error(where, "a state dict",
                str("a whole module, ", describe(*module.dict),
                    module.path.empty() ? "" : " under " + quoted_list({module.path}), advice));
  }
  throw Error(where, "a dict of tensors, or one under a key such as \"state_dict\" or \"model\"",
              describe(root) + (root.kind == Kind::object ? advice : ""));
}

// The tensors of a module and of the modules in it; a module is an object whose state has its attributes by name.
void add_script_tensors(const PickleValue& module, const std::string& prefix,
                        std::unordered_set<const PickleValue*>& seen, StateDict& result) {
  constexpr size_t kMaxPrefix = 4096;  // limits the depth
  if (module.kind != Kind::object || module.state == nullptr || !module.state->has_entries()) return;
  if (prefix.size() > kMaxPrefix || !seen.insert(&module).second) return;
  const auto& items = module.state->items;
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i]->kind != Kind::string || items[i]->text.empty()) continue;
    const std::string name = prefix + std::string(items[i]->text);
    const PickleValue& value = *items[i + 1];
    if (value.kind == Kind::tensor) result.tensors.emplace_back(name, value.tensor);
    if (value.kind == Kind::object) add_script_tensors(value, name + ".", seen, result);
  }
}

// The number of storage elements that a tensor spans from its offset.
int64_t span_of(const PickledTensor& tensor) {
  int64_t last = 0;
  for (int i = 0; i < tensor.shape.rank(); ++i) last += (tensor.shape[i] - 1) * tensor.strides[i];
  return last + 1;
}

}  // namespace

StateDict find_tensors(const PickleValue& root, const std::string& where, const TensorReader& read, size_t choice) {
  const Search search(root);
  const std::vector<Candidate> known = recognised_dicts(search, read);
  StateDict result;
  for (const Candidate& candidate : known) result.choices.push_back(candidate.path);
  const PickleValue* dict = nullptr;
  if (choice < known.size()) {
    dict = known[choice].dict;
    say_choice(known, choice, where);
  } else if (search.modules().empty()) {
    dict = unknown_dict(search);
  }
  if (dict == nullptr) fail_without_dict(root, search, where);
  std::unordered_set<std::string_view> seen;
  for (size_t i = dict->items.size(); i >= 2; i -= 2) {  // backwards: the last of equal keys wins, as in Python
    const PickleValue &key = *dict->items[i - 2], &value = *dict->items[i - 1];
    if (key.kind != Kind::string || !seen.insert(key.text).second) continue;
    if (value.kind == Kind::tensor) result.tensors.emplace_back(std::string(key.text), value.tensor);
    if (value.kind == Kind::object) result.objects.emplace(std::string(key.text), name_of(*value.global));
  }
  std::reverse(result.tensors.begin(), result.tensors.end());
  return result;
}

StateDict find_script_tensors(const PickleValue& root, const std::string& where) {
  StateDict result;
  std::unordered_set<const PickleValue*> seen;
  add_script_tensors(root, "", seen, result);
  if (result.tensors.empty()) throw Error(where, "a TorchScript module with parameters", "none");
  return result;
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
  const Float8 float8 = tensor.type.float8;
  const Tensor stored = bytes.tensor(first, float8 == Float8::none ? tensor.type.dtype : DType::u8, {span_of(tensor)});
  const Tensor flat = float8 == Float8::none ? stored : widen(stored, float8);
  return Tensor(flat.storage(), tensor.type.dtype, tensor.shape, tensor.strides, 0);
}

}  // namespace vitrail::weights

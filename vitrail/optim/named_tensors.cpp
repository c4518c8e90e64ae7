// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/optim/named_tensors_internal.h"

namespace vitrail::optim {
namespace {

constexpr size_t kMaxListed = 20;  // problems in one message; a wrong model has hundreds

std::string described(const Tensor& tensor) { return str(name_of(tensor.dtype()), " ", tensor.shape()); }

}  // namespace

void copy_by_name(const std::vector<nn::NamedTensor>& from, const std::vector<nn::NamedTensor>& into,
                  const std::string& where) {
  std::vector<std::string> problems;
  std::unordered_map<std::string, Tensor> sources;
  for (const nn::NamedTensor& entry : from) {
    if (!sources.emplace(entry.name, entry.tensor).second) problems.push_back("'" + entry.name + "' occurs twice");
  }
  for (const nn::NamedTensor& entry : into) {
    const auto found = sources.find(entry.name);
    if (found == sources.end()) {
      problems.push_back("'" + entry.name + "' is missing");
      continue;
    }
    const Tensor& tensor = found->second;
    if (!(tensor.shape() == entry.tensor.shape()) || tensor.dtype() != entry.tensor.dtype()) {
      problems.push_back("'" + entry.name + "': expected " + described(entry.tensor) + ", got " + described(tensor));
    }
  }
  std::unordered_set<std::string> known;
  for (const nn::NamedTensor& entry : into) known.insert(entry.name);
  for (const nn::NamedTensor& entry : from) {
    if (!known.count(entry.name)) problems.push_back("'" + entry.name + "' is not expected");
  }
  if (!problems.empty()) {
    const std::span listed = std::span(problems).first(std::min(problems.size(), kMaxListed));
    std::string text = where + ": " + counted(problems.size(), "difference") + "\n  " + join(listed, "\n  ");
    if (problems.size() > kMaxListed) text += str("\n  and ", problems.size() - kMaxListed, " more");
    throw Error(text);
  }
  for (const nn::NamedTensor& entry : into) entry.tensor.copy_(sources.at(entry.name).detach());
}

void check_trainable(const std::vector<nn::NamedTensor>& tensors, const std::string& where) {
  std::unordered_set<std::string> names;
  for (const nn::NamedTensor& entry : tensors) {
    const Tensor& tensor = entry.tensor;
    if (!tensor.defined() || tensor.is_meta())
      throw Error(where, "a tensor with data", "none for '" + entry.name + "'");
    if (tensor.dtype() != DType::f32 && tensor.dtype() != DType::f64) {
      throw Error(where, "weights in f32 or f64", str(name_of(tensor.dtype()), " for '", entry.name, "'"));
    }
    if (!tensor.is_contiguous()) throw Error(where, "contiguous weights", "a strided view for '" + entry.name + "'");
    if (!names.insert(entry.name).second) throw Error(where, "a name for each weight", "'" + entry.name + "' twice");
  }
}

}  // namespace vitrail::optim

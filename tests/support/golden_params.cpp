// SPDX-License-Identifier: Apache-2.0
#include "tests/support/golden_params.h"

#include "vitrail/base/error.h"

namespace vitrail::testing {
namespace {

bool is_parameter(const std::string& name) {
  static const std::set<std::string> masks{"key_padding_mask", "attn_mask", "attn_bias"};
  const bool dotted = name.find('.') != std::string::npos;  // "input_norm.weight" is a parameter, "input_query" is not
  return dotted || (name.rfind("input", 0) != 0 && name.rfind("output", 0) != 0 && masks.count(name) == 0);
}

}  // namespace

Tensor GoldenParams::get(const std::string& path, const Shape& shape, const Initializer&) {
  const Tensor& tensor = golden_[path];
  if (!(tensor.shape() == shape)) throw Error(path, shape.to_string(), tensor.shape().to_string());
  read_.insert(path);
  return tensor.to(dtype_);
}

void GoldenParams::finish() {
  std::string unused;
  for (const auto& [name, tensor] : golden_.tensors) {
    if (is_parameter(name) && read_.count(name) == 0) unused += " " + name;
  }
  if (!unused.empty()) throw Error("golden parameters", "a layer that reads all of them", "unused:" + unused);
}

}  // namespace vitrail::testing

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Handwritten files of torch.save in the legacy format, for forms that no fixture has.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::testing {

// Pieces of a pickle.
std::string pickled_text(const std::string& text);  // at most 255 bytes
std::string pickled_global(const std::string& module, const std::string& name);
std::string pickled_dict(const std::vector<std::pair<std::string, std::string>>& entries);  // name, pickled value

// The result of REDUCE: module.name(*arguments), where `arguments` are pickled values one after another.
std::string pickled_call(const std::string& module, const std::string& name, const std::string& arguments = "");

// Collects tensors and writes the file.
class TorchSave {
 public:
  std::string tensor(const Tensor& f32);  // its pickled value
  // A state dict of all tensors, with `prefix` in front of the names.
  std::string state_dict(const std::vector<std::pair<std::string, Tensor>>& tensors, const std::string& prefix = "");
  std::string file(const std::string& pickled_root) const;

 private:
  std::vector<Tensor> tensors_;
};

}  // namespace vitrail::testing

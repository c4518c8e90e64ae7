// SPDX-License-Identifier: Apache-2.0
#pragma once
// A module's parameters as a source for another module of the same structure.
#include <map>
#include <string>

#include "vitrail/nn/module.h"
#include "vitrail/tensor/param_source.h"

namespace vitrail::nn {

// Provides copies of a module's parameters, or of those in `replaced` by name ("blocks.0.mlp.fc1.weight").
// Throws std::out_of_range for a name that the module does not have.
class CopiedParams : public ParamProvider {
 public:
  explicit CopiedParams(const Module& module, const std::map<std::string, Tensor>& replaced = {});
  Tensor get(const std::string& path, const Shape& shape, const Initializer& init) override;
  bool has(const std::string& path) const override { return tensors_.contains(path); }
  void finish() override {}

 private:
  std::map<std::string, Tensor> tensors_;
};

}  // namespace vitrail::nn

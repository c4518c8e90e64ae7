// SPDX-License-Identifier: Apache-2.0
#pragma once
// Layers with random parameters, the names of these, and what a trace of a layer reports, for the tests of nn.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "vitrail/nn/trace.h"

namespace vitrail::nn {

using Names = std::vector<std::string>;
using Values = std::map<std::string, Tensor>;

inline Names names_of(const Module& module) {
  Names names;
  for (const NamedTensor& p : module.named_parameters()) names.push_back(p.name);
  return names;
}

// All that `run` reports, under its names.
template <class Run>
Values traced_by(const Run& run) {
  Values values;
  const TraceScope scope([&](const std::string& name, const Tensor& tensor) { values[name] = tensor; });
  run();
  return values;
}

class Layers : public ::testing::Test {
 protected:
  ParamSource source(const std::string& path = "") { return ParamSource(random_, path); }

 private:
  RandomParams random_{1};
};

}  // namespace vitrail::nn

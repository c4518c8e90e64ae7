// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gives a layer the tensors of a fixture as its parameters.
#include <set>

#include "tests/support/golden.h"
#include "vitrail/tensor/param_source.h"

namespace vitrail::testing {

// Strict: get() throws for a missing or misshapen parameter, and finish() throws if a parameter of the fixture was
// never read.  Not parameters: "input…", "output…" and the masks (names that fixtures under layers/ use).
class GoldenParams : public ParamProvider {
 public:
  explicit GoldenParams(const Golden& golden, DType dtype = DType::f32) : golden_(golden), dtype_(dtype) {}
  Tensor get(const std::string& path, const Shape& shape, const Initializer& init) override;
  bool has(const std::string& path) const override { return golden_.has(path); }
  void finish() override;

 private:
  const Golden& golden_;
  DType dtype_;
  std::set<std::string> read_;
};

}  // namespace vitrail::testing

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Layer fixtures (tests/fixtures/layers/NAME.safetensors) for the tests of nn.
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/support/golden_params.h"
#include "tests/support/paths.h"
#include "vitrail/nn/module.h"

namespace vitrail::nn {

// The tolerance of an f32 layer against the f64 reference.  An output of these fixtures is a chain of at most six dot
// products of at most 96 terms of order 1.  A dot product of K terms has an error of about √K · 2^-24 and at most
// K · 2^-24, which is 96 · 6e-8 = 6e-6.  A wrong formula changes these fixtures by more than 1e-5.
constexpr double kTolerance = 1e-5;
// The relative error of the reference, which is stored as f32: half a unit in the last place.
constexpr double kStored = 1.0 / (1 << 24);
constexpr double kExact = 1e-12;

struct LayerFixture {
  explicit LayerFixture(const std::string& name)
      : golden(testing::read_golden(testing::fixture("layers/" + name + ".safetensors"))),
        config(nlohmann::json::parse(golden.config)) {}

  template <class T>
  T get(const char* key) const {
    return config.at(key).get<T>();
  }
  // Nothing if the key is absent or null.
  template <class T>
  std::optional<T> optional(const char* key) const {
    const auto found = config.find(key);
    return found == config.end() || found->is_null() ? std::nullopt : std::optional<T>(found->get<T>());
  }
  const Tensor& operator[](const std::string& name) const { return golden[name]; }
  Tensor mask(const std::string& name) const { return golden.has(name) ? golden[name] : Tensor(); }

  testing::Golden golden;
  nlohmann::json config;
};

// Returns make(ParamSource) with the fixture's parameters.  Throws if the layer does not read all of them.
template <class Make>
auto build(const LayerFixture& fixture, DType dtype, Make make) {
  testing::GoldenParams params(fixture.golden, dtype);
  auto layer = make(ParamSource(params));
  params.finish();
  return layer;
}

// Compares with the reference, with the tolerance of `got`'s dtype.
inline ::testing::AssertionResult matches(const Tensor& got, const Tensor& want) {
  return got.dtype() == DType::f64 ? testing::close(got, want, kExact, kStored) : testing::close(got, want, kTolerance);
}

inline std::string name_of_case(const ::testing::TestParamInfo<std::string>& info) { return info.param; }

}  // namespace vitrail::nn

// SPDX-License-Identifier: Apache-2.0
#pragma once
// A layer fixture (tests/fixtures/layers/NAME.safetensors) as the tests of nn use it.
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/support/golden_params.h"
#include "tests/support/paths.h"
#include "vitrail/nn/module.h"

namespace vitrail::nn {

// What an f32 layer may differ from the f64 reference.  An output of these fixtures is a chain of at most six sums of
// at most 96 products, all of order 1; each sum of K terms is off by √K · 2^-24 typically and K · 2^-24 at worst, which
// is 96 · 6e-8 = 6e-6.  Parts in 1e5 catch every mistake of formula: the fixtures were made to move by more.
constexpr double kTolerance = 1e-5;
// An f64 layer differs by what storing the reference as f32 rounded away: half a unit in the last place, relative.
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
  // Absent or null: nothing.
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

// Makes the layer from the fixture's parameters, all of which it has to read: make(ParamSource) → layer.
template <class Make>
auto build(const LayerFixture& fixture, DType dtype, Make make) {
  testing::GoldenParams params(fixture.golden, dtype);
  auto layer = make(ParamSource(params));
  params.finish();
  return layer;
}

// Whether `got` is the reference's, within what its dtype can hold.
inline ::testing::AssertionResult matches(const Tensor& got, const Tensor& want) {
  return got.dtype() == DType::f64 ? testing::close(got, want, kExact, kStored) : testing::close(got, want, kTolerance);
}

inline std::string name_of_case(const ::testing::TestParamInfo<std::string>& info) { return info.param; }

}  // namespace vitrail::nn

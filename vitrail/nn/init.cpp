// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/init.h"

#include <cmath>

#include "vitrail/base/random.h"

namespace vitrail::nn::init {
namespace {

// Fills a parameter of any dtype with draw(random).
Initializer filled(std::function<double(RandomStream&)> draw) {
  return [draw = std::move(draw)](Tensor& parameter, uint64_t key) {
    RandomStream random(key);
    dispatch_dtype(parameter.dtype(), [&](auto tag) {
      using T = decltype(tag);
      T* data = parameter.data<T>();
      for (int64_t i = 0; i < parameter.numel(); ++i) data[i] = convert_element<T>(draw(random));
    });
  };
}

// N(0, stddev²), redrawn until the value is within ±bound.
Initializer normal_within(double stddev, double bound) {
  return filled([=](RandomStream& random) {
    double value = stddev * random.normal();
    while (std::abs(value) > bound) value = stddev * random.normal();
    return value;
  });
}

}  // namespace

Initializer constant(double value) {
  return filled([value](RandomStream&) { return value; });
}
Initializer uniform(double bound) {
  return filled([bound](RandomStream& random) { return bound * (2.0 * random.uniform() - 1.0); });
}
Initializer normal(double stddev) {
  return filled([stddev](RandomStream& random) { return stddev * random.normal(); });
}
Initializer truncated_normal(double stddev) { return normal_within(stddev, 2.0); }
Initializer xavier_uniform(int64_t fan_in, int64_t fan_out) {
  return uniform(std::sqrt(6.0 / static_cast<double>(fan_in + fan_out)));
}
Initializer lecun_normal(int64_t fan_in) {
  constexpr double kTruncatedStddev = 0.87962566103423978;  // N(0, 1) cut at ±2 has this standard deviation
  const double stddev = std::sqrt(1.0 / static_cast<double>(fan_in)) / kTruncatedStddev;
  return normal_within(stddev, 2.0 * stddev);
}
Initializer torch_default(int64_t fan_in) { return uniform(1.0 / std::sqrt(static_cast<double>(fan_in))); }

LinearInit linear(Scheme scheme, Role role, int64_t fan_in, int64_t fan_out) {
  const Initializer xavier = xavier_uniform(fan_in, fan_out), torch = torch_default(fan_in);
  switch (scheme) {
    case Scheme::torch:
      return {torch, torch};
    case Scheme::timm:  // timm keeps PyTorch's default for the patch convolution
      if (role == Role::patch) return {torch, torch};
      return {truncated_normal(0.02), zeros()};
    case Scheme::jax:
    case Scheme::jax_nlhb:
      if (role == Role::patch) return {lecun_normal(fan_in), zeros()};
      if (role == Role::head) {
        return {zeros(), constant(scheme == Scheme::jax_nlhb ? -std::log(static_cast<double>(fan_out)) : 0.0)};
      }
      return {xavier, role == Role::mlp ? normal(1e-6) : zeros()};
    case Scheme::moco:
      if (role == Role::patch) return {torch, torch};
      if (role == Role::qkv) return {uniform(std::sqrt(6.0 / static_cast<double>(fan_out / 3 + fan_in))), zeros()};
      return {xavier, zeros()};
    case Scheme::xavier:
      if (role == Role::patch) return {torch, torch};
      return {xavier, role == Role::mlp ? normal(1e-6) : zeros()};
  }
  return {torch, torch};
}

}  // namespace vitrail::nn::init

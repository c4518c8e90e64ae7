// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/dropout.h"

#include <cstdio>
#include <numeric>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/elementwise.h"

namespace vitrail::nn {
namespace {

thread_local RandomScope::State scope;

uint64_t key_of(const std::string& path) { return random_key(path, scope.seed, scope.step); }

}  // namespace

double checked_probability(double p, const std::string& path) {
  if (!(p >= 0 && p < 1))
    throw Error(path.empty() ? "dropout" : path, "a dropout probability in [0, 1)", python_float(p));
  return p;
}

RandomScope::RandomScope(State state) : outer_(std::exchange(scope, std::move(state))) {}
RandomScope::~RandomScope() { scope = std::move(outer_); }
const RandomScope::State& RandomScope::current() { return scope; }

std::vector<std::vector<int64_t>> random_orders(const std::string& path, int64_t samples, int64_t n) {
  std::vector<std::vector<int64_t>> orders;
  for (int64_t b = 0; b < samples; ++b) {
    RandomStream random(key_of(path), static_cast<uint64_t>(scope.positions.empty() ? b : scope.positions[b]));
    std::vector<int64_t>& order = orders.emplace_back(n);
    std::iota(order.begin(), order.end(), 0);
    for (int64_t i = n - 1; i > 0; --i) {  // Fisher–Yates
      std::swap(order[i], order[static_cast<int64_t>(random.uniform() * static_cast<double>(i + 1))]);
    }
  }
  return orders;
}

Dropout::Dropout(double p, std::string path) : Module(std::move(path)), p_(checked_probability(p, this->path())) {}

Tensor Dropout::forward(const Tensor& x) const {
  if (!active()) return traced(*this, x);
  return traced(*this, ops::mul(x, ops::dropout_mask(x.shape(), p_, key_of(path()), scope.positions, x.dtype())));
}

DropPath::DropPath(double p, std::string path) : Module(std::move(path)), p_(checked_probability(p, this->path())) {}

Tensor DropPath::keep(int64_t batch) const {
  if (!training() || p_ == 0) return {};
  return ops::dropout_mask({batch}, p_, key_of(path()), scope.positions, DType::f64);
}

std::string DropPath::extra() const {
  if (p_ == 0) return "";
  char text[32];
  std::snprintf(text, sizeof(text), "drop_prob=%.3f", p_);
  return text;
}

}  // namespace vitrail::nn

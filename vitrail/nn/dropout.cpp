#include "vitrail/nn/dropout.h"

#include <cstdio>
#include <numeric>

#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/ops/elementwise.h"

namespace vitrail::nn {
namespace {

thread_local uint64_t current_seed = 0, current_step = 0;

double checked_probability(double p, const std::string& path) {
  if (!(p >= 0 && p < 1))
    throw Error(path.empty() ? "dropout" : path, "a dropout probability in [0, 1)", python_float(p));
  return p;
}

}  // namespace

RandomScope::RandomScope(uint64_t seed, uint64_t step) : seed_(current_seed), step_(current_step) {
  current_seed = seed;
  current_step = step;
}
RandomScope::~RandomScope() {
  current_seed = seed_;
  current_step = step_;
}

std::vector<int64_t> random_order(const std::string& path, int64_t sample, int64_t n) {
  RandomStream random(random_key(path, current_seed, current_step), static_cast<uint64_t>(sample));
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = n - 1; i > 0; --i) {  // Fisher–Yates
    std::swap(order[i], order[static_cast<int64_t>(random.uniform() * static_cast<double>(i + 1))]);
  }
  return order;
}

Dropout::Dropout(double p, std::string path) : Module(std::move(path)), p_(checked_probability(p, this->path())) {}

Tensor Dropout::forward(const Tensor& x) const {
  if (!active()) return x;
  return ops::mul(x, ops::dropout_mask(x.shape(), p_, random_key(path(), current_seed, current_step), x.dtype()));
}

DropPath::DropPath(double p, std::string path) : Module(std::move(path)), p_(checked_probability(p, this->path())) {}

Tensor DropPath::keep(int64_t batch) const {
  if (!training() || p_ == 0) return {};
  return ops::dropout_mask({batch}, p_, random_key(path(), current_seed, current_step), DType::f64);
}

std::string DropPath::extra() const {
  if (p_ == 0) return "";
  char text[32];
  std::snprintf(text, sizeof(text), "drop_prob=%.3f", p_);
  return text;
}

}  // namespace vitrail::nn

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/nn/module.h"

namespace vitrail::nn {

// The state of this thread's random layers: (seed, step), and the position of each sample in the step's global batch
// (empty: 0, 1, ...).  With the layer's path it is the key of a draw.  So draws do not depend on threads, on other
// layers, or on the partition of the batch among processes.  Scopes nest.
class RandomScope {
 public:
  struct State {
    uint64_t seed = 0, step = 0;
    std::vector<int64_t> positions;
  };
  explicit RandomScope(State state);
  RandomScope(uint64_t seed, uint64_t step, std::vector<int64_t> positions = {})
      : RandomScope(State{seed, step, std::move(positions)}) {}
  ~RandomScope();
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;
  static const State& current();

 private:
  State outer_;
};

// Throws Error naming the layer's path for a probability that is not in [0, 1).
double checked_probability(double p, const std::string& path);

// A permutation of 0 to n − 1 for each of `samples`, drawn under the thread's RandomScope and the layer's path.
std::vector<std::vector<int64_t>> random_orders(const std::string& path, int64_t samples, int64_t n);

// Training: each element is zeroed with probability p, the others scaled by 1/(1 − p).  Eval: identity.  p in [0, 1).
class Dropout : public Module {
 public:
  Dropout(double p, std::string path);
  Tensor forward(const Tensor& x) const;
  bool active() const { return training() && p_ > 0; }
  std::string type() const override { return "Dropout"; }
  std::string extra() const override { return "p=" + python_float(p_) + ", inplace=False"; }
  void visit(Visitor&) override {}

 private:
  double p_;
};

// Stochastic depth (Huang et al. 2016).  Training: a sample's residual branch is dropped with probability p, else
// scaled by 1/(1 − p).  p in [0, 1).
class DropPath : public Module {
 public:
  DropPath(double p, std::string path);
  // The factor of each sample, f64 [batch], for ops::residual_add; undefined if nothing is dropped.
  Tensor keep(int64_t batch) const;
  std::string type() const override { return p_ > 0 ? "DropPath" : "Identity"; }
  std::string extra() const override;
  void visit(Visitor&) override {}

 private:
  double p_;
};

}  // namespace vitrail::nn

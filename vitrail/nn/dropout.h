// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/nn/module.h"

namespace vitrail::nn {

// What random layers of this thread draw under: (seed, step), and where in the step's global batch each sample of the
// forward pass stands (empty: 0, 1, …).  With the layer's path it makes the key, so that a draw depends neither on
// threads, nor on other layers, nor on how the batch is divided among processes.
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

// For each of `samples`, a permutation of 0 … n − 1 that a random layer draws under the thread's RandomScope.
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

// Stochastic depth (Huang et al. 2016): in training a sample's residual branch is left out with probability p, and
// scaled by 1/(1 − p) when kept.  p in [0, 1).
class DropPath : public Module {
 public:
  DropPath(double p, std::string path);
  // The factor of each sample, [batch] f64, for ops::residual_add; undefined when nothing is to be dropped.
  Tensor keep(int64_t batch) const;
  std::string type() const override { return p_ > 0 ? "DropPath" : "Identity"; }
  std::string extra() const override;
  void visit(Visitor&) override {}

 private:
  double p_;
};

}  // namespace vitrail::nn

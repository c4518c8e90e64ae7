// SPDX-License-Identifier: Apache-2.0
// Lion (Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", algorithm 2):
//   w ← (1 − η λ) w − η · sign(β₁ m + (1 − β₁) g)
//   m ← β₂ m + (1 − β₂) g
#include "vitrail/kernels/optimizer/weight_update.h"
#include "vitrail/optim/rules_internal.h"

namespace vitrail::optim {
namespace {

class Lion : public Optimizer {
 public:
  Lion(const OptimizerOptions& options, std::vector<Parameter> parameters)
      : Optimizer(std::move(parameters), {"exp_avg"}), options_(options) {}

 private:
  void update(double rate, double gradient_scale) override {
    for_each_chunk([&](size_t, const Chunk& chunk) {
      const Parameter& p = parameters()[chunk.parameter];
      const kernels::LionStep step{.gradient_scale = gradient_scale,
                                   .beta1 = options_.beta1,
                                   .beta2 = *options_.beta2,
                                   .rate = rate * p.rate_scale,
                                   .weight_decay = decay_of(p)};
      dispatch_weights(p.tensor, [&](auto tag) {
        using T = decltype(tag);
        auto chunk_of = [&](const Tensor& tensor) { return tensor.data<T>() + chunk.first; };
        kernels::lion(chunk_of(p.tensor), chunk_of(gradients()[chunk.parameter]), chunk_of(buffer(0, chunk.parameter)),
                      chunk.count, step);
      });
    });
  }

  OptimizerOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lion(const OptimizerOptions& options, std::vector<Parameter> parameters) {
  return std::make_unique<Lion>(options, std::move(parameters));
}

}  // namespace vitrail::optim

// SPDX-License-Identifier: Apache-2.0
// AdamW (Loshchilov & Hutter 2019, "Decoupled Weight Decay Regularization", algorithm 2), as torch.optim.AdamW, where
// the learning rate also scales the weight decay:
//   m ← β₁ m + (1 − β₁) g,  v ← β₂ v + (1 − β₂) g²
//   w ← (1 − η λ) w − η m̂ / (√v̂ + ε)   with m̂ = m / (1 − β₁ᵗ), v̂ = v / (1 − β₂ᵗ)
#include <cmath>

#include "vitrail/kernels/optimizer/weight_update.h"
#include "vitrail/optim/rules_internal.h"

namespace vitrail::optim {
namespace {

class AdamW : public Optimizer {
 public:
  AdamW(const OptimizerOptions& options, std::vector<Parameter> parameters)
      : Optimizer(std::move(parameters), {"exp_avg", "exp_avg_sq"}), options_(options) {}

 private:
  void update(double rate, double gradient_scale) override {
    const auto t = static_cast<double>(steps());
    const double bias_correction1 = 1 - std::pow(options_.beta1, t),
                 sqrt_bias_correction2 = std::sqrt(1 - std::pow(*options_.beta2, t));
    for_each_chunk([&](size_t, const Chunk& chunk) {
      const Parameter& p = parameters()[chunk.parameter];
      const kernels::AdamStep step{.gradient_scale = gradient_scale,
                                   .beta1 = options_.beta1,
                                   .beta2 = *options_.beta2,
                                   .eps = *options_.eps,
                                   .bias_correction1 = bias_correction1,
                                   .sqrt_bias_correction2 = sqrt_bias_correction2,
                                   .rate = rate * p.rate_scale,
                                   .weight_decay = decay_of(p)};
      dispatch_weights(p.tensor, [&](auto tag) {
        using T = decltype(tag);
        auto chunk_of = [&](const Tensor& tensor) { return tensor.data<T>() + chunk.first; };
        kernels::adamw(chunk_of(p.tensor), chunk_of(gradients()[chunk.parameter]), chunk_of(buffer(0, chunk.parameter)),
                       chunk_of(buffer(1, chunk.parameter)), chunk.count, step);
      });
    });
  }

  OptimizerOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(const OptimizerOptions& options, std::vector<Parameter> parameters) {
  return std::make_unique<AdamW>(options, std::move(parameters));
}

}  // namespace vitrail::optim

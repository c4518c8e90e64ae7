// SPDX-License-Identifier: Apache-2.0
// LAMB (You et al. 2020, "Large Batch Optimization for Deep Learning", algorithm 2), as timm.optim.Lamb:
//   u = m̂ / (√v̂ + ε) + λ w   with Adam's m̂ and v̂ (adamw.cpp)
//   w ← w − η · (‖w‖ / ‖u‖) · u   with the norms of each parameter tensor
#include <cmath>

#include "vitrail/kernels/optimizer/weight_update.h"
#include "vitrail/optim/rules_internal.h"

namespace vitrail::optim {
namespace {

class Lamb : public Optimizer {
 public:
  Lamb(const OptimizerOptions& options, std::vector<Parameter> parameters)
      : Optimizer(std::move(parameters), {"exp_avg", "exp_avg_sq"}), options_(options) {}

 private:
  kernels::AdamStep step_of(const Parameter& p, double rate, double gradient_scale) const {
    const auto t = static_cast<double>(steps());
    return {.gradient_scale = gradient_scale,
            .beta1 = options_.beta1,
            .beta2 = *options_.beta2,
            .eps = *options_.eps,
            .bias_correction1 = 1 - std::pow(options_.beta1, t),
            .sqrt_bias_correction2 = std::sqrt(1 - std::pow(*options_.beta2, t)),
            .rate = rate * p.rate_scale,
            .weight_decay = decay_of(p)};
  }

  void update(double rate, double gradient_scale) override {
    std::vector<kernels::LambSquares> squares(chunks().size());
    for_each_chunk_step(rate, gradient_scale,
                        [&](size_t c, auto* w, const auto* g, auto* m, auto* v, const auto& step) {
                          squares[c] = kernels::lamb_moments(w, g, m, v, chunks()[c].count, step);
                        });
    const std::vector<double> ratios = trust_ratios(squares);
    for_each_chunk_step(rate, gradient_scale, [&](size_t c, auto* w, const auto*, auto* m, auto* v, const auto& step) {
      kernels::lamb_apply(w, m, v, chunks()[c].count, ratios[chunks()[c].parameter], step);
    });
  }

  // Calls body(chunk index, w, g, m, v, step) for all chunks in parallel.
  template <class Body>
  void for_each_chunk_step(double rate, double gradient_scale, Body body) const {
    for_each_chunk([&](size_t c, const Chunk& chunk) {
      const size_t i = chunk.parameter;
      const kernels::AdamStep step = step_of(parameters()[i], rate, gradient_scale);
      dispatch_weights(parameters()[i].tensor, [&](auto tag) {
        using T = decltype(tag);
        auto chunk_of = [&](const Tensor& tensor) { return tensor.data<T>() + chunk.first; };
        body(c, chunk_of(parameters()[i].tensor), chunk_of(gradients()[i]), chunk_of(buffer(0, i)),
             chunk_of(buffer(1, i)), step);
      });
    });
  }

  // Returns ‖w‖ / ‖u‖ for each parameter.  As in timm it is 1 if either norm is 0, and for parameters without weight
  // decay (biases and norms).
  std::vector<double> trust_ratios(const std::vector<kernels::LambSquares>& squares) const {
    std::vector<kernels::LambSquares> sums(parameters().size());
    for (size_t c = 0; c < squares.size(); ++c) {  // in order, so that the result does not depend on threads
      sums[chunks()[c].parameter].weight += squares[c].weight;
      sums[chunks()[c].parameter].update += squares[c].update;
    }
    std::vector<double> ratios(parameters().size(), 1.0);
    for (size_t i = 0; i < ratios.size(); ++i) {
      const bool adaptive = parameters()[i].weight_decay != 0 && sums[i].weight > 0 && sums[i].update > 0;
      if (adaptive) ratios[i] = std::sqrt(sums[i].weight) / std::sqrt(sums[i].update);
    }
    return ratios;
  }

  OptimizerOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lamb(const OptimizerOptions& options, std::vector<Parameter> parameters) {
  return std::make_unique<Lamb>(options, std::move(parameters));
}

}  // namespace vitrail::optim

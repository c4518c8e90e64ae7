// SPDX-License-Identifier: Apache-2.0
// Stochastic gradient descent with momentum, optionally Nesterov's (Sutskever et al. 2013, equations 1 to 4), in the
// form of torch.optim.SGD, where weight decay is added to the gradient:
//   d = g + λ w,  b ← μ b + d
//   w ← w − η b, or with Nesterov momentum w ← w − η (d + μ b)
#include "vitrail/kernels/optimizer/weight_update.h"
#include "vitrail/optim/rules_internal.h"

namespace vitrail::optim {
namespace {

class Sgd : public Optimizer {
 public:
  Sgd(const OptimizerOptions& options, std::vector<Parameter> parameters)
      : Optimizer(std::move(parameters),
                  options.momentum == 0 ? std::vector<std::string>{} : std::vector<std::string>{"momentum_buffer"}),
        options_(options) {}

 private:
  void update(double rate, double gradient_scale) override {
    for_each_chunk([&](size_t, const Chunk& chunk) {
      const Parameter& p = parameters()[chunk.parameter];
      const kernels::SgdStep step{.gradient_scale = gradient_scale,
                                  .rate = rate * p.rate_scale,
                                  .weight_decay = decay_of(p),
                                  .momentum = options_.momentum,
                                  .nesterov = options_.nesterov};
      dispatch_weights(p.tensor, [&](auto tag) {
        using T = decltype(tag);
        auto chunk_of = [&](const Tensor& tensor) { return tensor.data<T>() + chunk.first; };
        T* const momentum = options_.momentum == 0 ? nullptr : chunk_of(buffer(0, chunk.parameter));
        kernels::sgd(chunk_of(p.tensor), chunk_of(gradients()[chunk.parameter]), momentum, chunk.count, step);
      });
    });
  }

  OptimizerOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const OptimizerOptions& options, std::vector<Parameter> parameters) {
  return std::make_unique<Sgd>(options, std::move(parameters));
}

}  // namespace vitrail::optim

// SPDX-License-Identifier: Apache-2.0
// Stochastic gradient descent with momentum, Nesterov's if asked for (Sutskever et al. 2013).
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
                                  .weight_decay = p.weight_decay,
                                  .momentum = options_.momentum,
                                  .nesterov = options_.nesterov};
      dispatch_weights(p.tensor, [&](auto tag) {
        using T = decltype(tag);
        auto at = [&](const Tensor& tensor) { return tensor.data<T>() + chunk.first; };
        T* const momentum = options_.momentum == 0 ? nullptr : at(buffer(0, chunk.parameter));
        kernels::sgd(at(p.tensor), at(gradients()[chunk.parameter]), momentum, chunk.count, step);
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

#include "vitrail/infer/answer_gradients.h"

#include <algorithm>

#include "vitrail/autograd/engine.h"
#include "vitrail/base/random.h"
#include "vitrail/infer/layer_inputs.h"
#include "vitrail/kernels/linear.h"

namespace vitrail::infer {
namespace {

// Two give DeiT-Tiny's weights 7 to 8 % less error than none, four 9 to 10, eight 9 to 10.
constexpr int kDirections = 4;

Tensor random_like(const Tensor& answers, RandomStream& random) {
  Tensor direction = Tensor::empty(answers.shape());
  std::generate_n(direction.data<float>(), direction.numel(), [&] { return static_cast<float>(random.normal()); });
  return direction;
}

void add_products_of_rows(const Tensor& gradient, Tensor& sum) {
  const Tensor g = gradient.contiguous();
  const int64_t out = g.size(0), in = g.size(1);
  kernels::gemm(false, true, out, out, in, g.data<float>(), in, g.data<float>(), in, true, sum.data<float>(), out);
}

}  // namespace

std::map<std::string, Tensor> answer_gradients(models::VisionTransformer& model, const std::vector<Tensor>& images) {
  std::map<std::string, Tensor> weights, sums;
  model.requires_grad(true);
  for (int64_t block = 0; block < model.config().depth; ++block) {
    for (const auto& [layer, input] : inputs_of(model, block)) {
      const Tensor weight = weights[layer] = model.parameter(layer + ".weight");
      sums[layer] = Tensor::zeros({weight.size(0), weight.size(0)});
    }
  }
  RandomStream random(random_key("answer_gradients"));
  for (const Tensor& batch : images) {
    for (int64_t image = 0; image < batch.size(0); ++image) {
      for (int direction = 0; direction < kDirections; ++direction) {
        const Tensor answers = model.forward(batch.narrow(0, image, 1));
        autograd::backward(answers, random_like(answers, random));
        for (const auto& [layer, weight] : weights) {
          add_products_of_rows(autograd::grad_of(weight), sums[layer]);
          autograd::clear_grad(weight);
        }
      }
    }
  }
  model.requires_grad(false);
  return sums;
}

}  // namespace vitrail::infer

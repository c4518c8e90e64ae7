// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "vitrail/autograd/engine.h"
#include "vitrail/base/random.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/quantize/output_hessians_internal.h"

namespace vitrail::quantize {
namespace {

// 512 random directions: a mean of squares of that many normal draws has a relative deviation of √(2/512), 6 %.
constexpr int64_t kNumDirections = 512;

Tensor random_direction(const Shape& shape, RandomStream& random) {
  Tensor direction = Tensor::empty(shape);
  std::generate_n(direction.data<float>(), direction.numel(), [&] { return static_cast<float>(random.normal()); });
  return direction;
}

// hessian [out, out] += g gᵀ for g [out, in].
void accumulate(const Tensor& gradient, Tensor& hessian) {
  const Tensor g = gradient.contiguous();
  const int64_t out = g.size(0), in = g.size(1);
  kernels::gemm(false, true, out, out, in, g.data<float>(), in, g.data<float>(), in, true, hessian.data<float>(), out);
}

int64_t count_images(const std::vector<Tensor>& images) {
  int64_t count = 0;
  for (const Tensor& batch : images) count += batch.size(0);
  return count;
}

}  // namespace

std::map<std::string, Tensor> output_hessians(models::VisionTransformer& model, const std::vector<Tensor>& images,
                                              const std::vector<std::string>& layers) {
  std::map<std::string, Tensor> weights, hessians;
  model.requires_grad(true);
  for (const std::string& layer : layers) {
    const Tensor weight = weights[layer] = model.parameter(layer + ".weight");
    hessians[layer] = Tensor::zeros({weight.size(0), weight.size(0)});
  }
  const int64_t num_images = count_images(images);
  const int64_t directions_per_image = ceil_div(kNumDirections, num_images);
  RandomStream random(random_key("output_gradients"));
  for (const Tensor& batch : images) {
    for (int64_t pass = 0; pass < batch.size(0) * directions_per_image; ++pass) {
      const Tensor output = model.forward(batch.narrow(0, pass / directions_per_image, 1));
      autograd::backward(output, random_direction(output.shape(), random));
      for (const auto& [layer, weight] : weights) {
        accumulate(autograd::grad_of(weight), hessians[layer]);
        autograd::clear_grad(weight);
      }
    }
  }
  model.requires_grad(false);
  return hessians;
}

}  // namespace vitrail::quantize

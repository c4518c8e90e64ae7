// SPDX-License-Identifier: Apache-2.0
// A layer outside the library, rms_norm_layer.cpp, in a small model that is trained for a step and compiled.
#include "examples/extending/rms_norm_layer.h"
#include "examples/show.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/infer/function_session.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/ops/residual_add.h"

namespace {

using namespace vitrail;

// x + mlp(rms_norm(x)), then a linear head.  x [B, N, dim] → [B, N, classes]
class SmallModel : public nn::Module {
 public:
  SmallModel(int64_t dim, int64_t classes, const ParamSource& params)
      : Module(params.path()),
        norm_(dim, 1e-6, params.child("norm")),
        mlp_({.in_features = dim}, params.child("mlp")),
        head_(dim, classes, true, params.child("head")) {}
  Tensor forward(const Tensor& x) const { return head_.forward(ops::residual_add(x, mlp_.forward(norm_.forward(x)))); }
  std::string type() const override { return "SmallModel"; }
  void visit(nn::Visitor& visitor) override {
    visitor.child("norm", static_cast<nn::Module&>(norm_));
    visitor.child("mlp", static_cast<nn::Module&>(mlp_));
    visitor.child("head", static_cast<nn::Module&>(head_));
  }

 private:
  extending::RmsNorm norm_;
  nn::Mlp mlp_;
  nn::Linear head_;
};

}  // namespace

int main() {
  RandomParams params(0);
  SmallModel model(16, 4, ParamSource(params));
  std::printf("%s\n", model.to_string().c_str());
  show::shape("norm.weight, found by its path", model.parameter("norm.weight"), {16});

  const Tensor x = Tensor::randn({2, 3, 16}, 1);
  model.requires_grad(true);
  const Tensor out = model.forward(x);
  show::shape("output", out, {2, 3, 4});
  autograd::backward(out, Tensor::full(out.shape(), 1));
  show::shape("gradient of norm.weight", autograd::grad_of(model.parameter("norm.weight")), {16});
  model.requires_grad(false);

  const infer::FunctionSession session(model, [&model](const infer::NamedTensors& inputs) -> infer::NamedTensors {
    return {{"out", model.forward(infer::find_tensor(inputs, "x"))}};
  });
  const Tensor compiled = session.run({{"x", x}})[0].tensor;
  double worst = 0;
  for (int64_t i = 0; i < out.numel(); ++i) {
    worst = std::max(worst, std::abs(double(compiled.data<float>()[i]) - double(out.data<float>()[i])));
  }
  show::check("the compiled model computes the same", worst < 1e-5);
  return show::mismatches;
}

// SPDX-License-Identifier: Apache-2.0
// An operation outside the library, rms_norm.cpp: its values, its gradient, its recording and its compiled step.
#include "examples/extending/rms_norm.h"
#include "examples/show.h"
#include "vitrail/autograd/gradient_check.h"
#include "vitrail/infer/function_session.h"
#include "vitrail/nn/linear.h"
#include "vitrail/ops/recorder.h"

namespace {

using namespace vitrail;
using extending::rms_norm;

void values() {
  // mean(x²) = (3² + 4²) / 2 = 12.5
  const Tensor y = rms_norm(Tensor::from<float>({2}, {3, 4}), Tensor::from<float>({2}, {1, 2}), 0);
  show::check("rms_norm([3, 4]) · [1, 2] is [3, 8] / √12.5",
              std::abs(y.data<float>()[0] - 3 / std::sqrt(12.5)) < 1e-6 &&
                  std::abs(y.data<float>()[1] - 8 / std::sqrt(12.5)) < 1e-6);
}

// Central differences in double precision, for x and for gamma.
void gradient() {
  const auto function = [](const std::vector<Tensor>& in) { return rms_norm(in[0], in[1], 1e-6); };
  const Tensor x = Tensor::randn({3, 5}, 1, DType::f64), gamma = Tensor::randn({5}, 2, DType::f64);
  const autograd::GradientCheck check = autograd::check_gradients(function, {x, gamma});
  std::printf("largest error of the gradient: %.1e\n", check.worst);
  show::check("the gradient agrees with differences", check.worst < 1e-8);
}

// On the meta device there are shapes and no values; the recorder keeps the operation.
void recording() {
  const ops::Recorder recorder;
  const Tensor x = Tensor::empty({2, 4, 8}, DType::f32, Device::meta);
  show::shape("recorded result", rms_norm(x, Tensor::zeros({8}), 1e-6), {2, 4, 8});
  const std::vector<ops::RecordedOperation>& operations = recorder.operations();
  show::check("one operation was recorded", operations.size() == 1 && operations[0].operation->name == "rms_norm");
}

void compiled_step() {
  RandomParams params(0);
  nn::Linear linear(16, 8, true, ParamSource(params, "linear"));
  const Tensor gamma = Tensor::randn({8}, 3), x = Tensor::randn({2, 5, 16}, 4);
  const Tensor eager = rms_norm(linear.forward(x), gamma, 1e-6);

  const infer::FunctionSession session(linear, [&](const infer::NamedTensors& inputs) -> infer::NamedTensors {
    return {{"y", rms_norm(linear.forward(infer::find_tensor(inputs, "x")), gamma, 1e-6)}};
  });
  std::printf("%s", session.listing({{"x", x}}).c_str());
  const Tensor compiled = session.run({{"x", x}})[0].tensor;
  double worst = 0;
  for (int64_t i = 0; i < eager.numel(); ++i) {
    worst = std::max(worst, std::abs(double(compiled.data<float>()[i]) - double(eager.data<float>()[i])));
  }
  show::check("the compiled program computes the same", worst < 1e-5);
}

}  // namespace

int main() {
  values();
  gradient();
  recording();
  compiled_step();
  return show::mismatches;
}

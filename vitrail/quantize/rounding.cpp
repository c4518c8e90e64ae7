// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "vitrail/base/cholesky.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/kernels/gemm/weight_quantization_internal.h"
#include "vitrail/nn/trace.h"
#include "vitrail/quantize/layer_inputs.h"
#include "vitrail/quantize/output_gradients.h"
#include "vitrail/weights/finite_check_internal.h"

namespace vitrail::quantize {
namespace {

// Xᵀ X [in, in] of what a layer reads apart from the mean, by the traced point that gives it.
class Moments {
 public:
  Moments(const models::VisionTransformer& model, const std::vector<Tensor>& images,
          const std::set<std::string>& points)
      : read_alone_(model.num_head_tokens()) {
    const nn::TraceScope scope([&](const std::string& name, const Tensor& tensor) {
      if (points.contains(name)) add(name, tensor.to(DType::f32).contiguous());
    });
    for (const Tensor& batch : images) model.forward_features(batch);
  }
  // Null where no point has the name.
  const Tensor* of(const std::string& name) const {
    const auto found = moments_.find(name);
    return found == moments_.end() ? nullptr : &found->second;
  }

 private:
  void add(const std::string& name, const Tensor& x) {
    const int64_t in = x.size(-1), rows = x.numel() / in;
    const Tensor& moment = moments_.try_emplace(name, Tensor::zeros({in, in})).first->second;
    const Tensor apart = centered_patch_tokens(x, read_alone_);
    kernels::gemm(true, false, in, in, rows, apart.data<float>(), in, apart.data<float>(), in, true,
                  moment.data<float>(), in);
  }
  int64_t read_alone_;
  std::map<std::string, Tensor> moments_;
};

// Inputs or outputs of a layer in the order in which they are decided, from the last to the first: who weighs most
// comes first of all, while the others can still make up for it.  factor L [n, n] is that of the moments in this order:
// errors e cost |Lᵀ e|², whose i-th element depends on i and later ones.
struct ActOrder {
  std::vector<int64_t> at;
  std::vector<double> factor;
};

// dampening: what the moments' diagonal is raised by, as a part of its mean: few pictures do not say all.
ActOrder order_of(const Tensor& moment, double dampening) {
  const int64_t n = moment.size(0);
  const float* const m = moment.data<float>();
  ActOrder order{std::vector<int64_t>(static_cast<size_t>(n)), std::vector<double>(static_cast<size_t>(n * n))};
  std::iota(order.at.begin(), order.at.end(), 0);
  std::stable_sort(order.at.begin(), order.at.end(), [&](int64_t a, int64_t b) { return m[a * n + a] < m[b * n + b]; });
  double mean = 0;
  for (int64_t i = 0; i < n; ++i) mean += m[i * n + i] / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < n; ++k) order.factor[i * n + k] = m[order.at[i] * n + order.at[k]];
    order.factor[i * n + i] += dampening * mean + 1e-30;
  }
  order.factor = cholesky(std::move(order.factor), n);
  return order;
}

// Rounds rows of one layer: each input's number is the nearest to what makes its element of Lᵀ e vanish.
class RowRounder {
 public:
  explicit RowRounder(const ActOrder& inputs)
      : most_pair_(kernels::max_int8_pair()), inputs_(inputs), carried_(inputs.at.size()), numbers_(inputs.at.size()) {}

  // The step that loses least; 0 for a row of zeros.  One that is too small for the heaviest weights serves all the
  // others better.
  double best_step(const float* row) {
    constexpr float kShares[] = {1.0f, 0.93f, 0.86f, 0.79f, 0.72f, 0.65f, 0.58f};
    const float widest = kernels::quantize_weight_row(row, static_cast<int64_t>(numbers_.size()), numbers_.data());
    double best = 0, least = std::numeric_limits<double>::infinity();
    for (const float share : kShares) {
      const double error = widest > 0 ? choose_numbers(row, share * widest) : 0;
      if (error >= least) continue;
      least = error;
      best = share * widest;
    }
    return best;
  }

  // wanted [in] → step · numbers.
  void round(const float* wanted, double step, float* row) {
    if (step > 0) choose_numbers(wanted, step);
    for (size_t c = 0; c < numbers_.size(); ++c) row[c] = static_cast<float>(step) * static_cast<float>(numbers_[c]);
  }

 private:
  // Fills numbers_; gives |Lᵀ e|².
  double choose_numbers(const float* row, double step) {
    const auto n = static_cast<int64_t>(numbers_.size());
    std::fill(carried_.begin(), carried_.end(), 0.0);
    std::fill(numbers_.begin(), numbers_.end(), int8_t{0});
    double squares = 0;
    for (int64_t i = n - 1; i >= 0; --i) {
      const double* const factor = inputs_.factor.data() + i * n;
      const int64_t input = inputs_.at[i], neighbour = input ^ 1;
      const int beside = neighbour < n ? numbers_[neighbour] : 0;  // 0 where it is still to come
      const double most = std::min(kernels::kMaxInt8, most_pair_ - std::max(beside, 0)),
                   least = -std::min(kernels::kMaxInt8, most_pair_ + std::min(beside, 0));
      const double wanted = row[input] + carried_[i] / factor[i];
      const double number = std::clamp(std::nearbyint(wanted / step), least, most);
      const double left = factor[i] * (wanted - number * step), error = row[input] - number * step;
      squares += left * left;
      for (int64_t k = 0; k < i; ++k) carried_[k] += factor[k] * error;
      numbers_[input] = static_cast<int8_t>(number);
    }
    return squares;
  }

  int most_pair_;
  const ActOrder& inputs_;
  std::vector<double> carried_;
  std::vector<int8_t> numbers_;
};

std::vector<double> best_steps(const Tensor& weight, const ActOrder& inputs) {
  const int64_t in = weight.size(1);
  std::vector<double> steps(static_cast<size_t>(weight.size(0)));
  parallel_for(0, weight.size(0), 1, [&](int64_t first, int64_t last) {
    RowRounder rounder(inputs);
    for (int64_t r = first; r < last; ++r) steps[r] = rounder.best_step(weight.data<float>() + r * in);
  });
  return steps;
}

// What the rounding of one output adds to the answers, the outputs after it take back as far as they move them alike:
// each is rounded to what makes its row of Lᵀ e vanish, e [out, in].
void round_weight(const Tensor& weight, const Tensor& input_moment, const Tensor& output_moment) {
  const ActOrder inputs = order_of(input_moment, 0.003), outputs = order_of(output_moment, 0.5);
  const std::vector<double> steps = best_steps(weight, inputs);
  const int64_t out = weight.size(0), in = weight.size(1);
  RowRounder rounder(inputs);
  std::vector<float> errors(static_cast<size_t>(out * in)), wanted(static_cast<size_t>(in));  // errors as ordered
  for (int64_t i = out - 1; i >= 0; --i) {
    float* const row = weight.data<float>() + outputs.at[i] * in;
    std::copy_n(row, in, wanted.begin());
    for (int64_t k = i + 1; k < out; ++k) {
      const auto part = static_cast<float>(outputs.factor[k * out + i] / outputs.factor[i * out + i]);
      const float* const error = errors.data() + k * in;
      for (int64_t c = 0; c < in; ++c) wanted[c] += part * error[c];
    }
    float* const error = errors.data() + i * in;
    std::copy_n(row, in, error);
    rounder.round(wanted.data(), steps[outputs.at[i]], row);
    for (int64_t c = 0; c < in; ++c) error[c] -= row[c];
  }
}

// How many blocks' moments have room together: all but the largest models'.
int64_t blocks_at_once(const models::VisionTransformer& model) {
  constexpr int64_t kMostBytes = int64_t{4} << 30;
  int64_t bytes = 0;
  for (const auto& [layer, input] : inputs_of(model, 0)) {
    const Shape shape = model.parameter(layer + ".weight").shape();
    bytes += (shape[0] * shape[0] + shape[1] * shape[1]) * static_cast<int64_t>(sizeof(float));
  }
  return std::max<int64_t>(1, kMostBytes / bytes);
}

// inputs: by layer the traced point that gives its input.  Returns the weights as they were.
std::map<std::string, Tensor> round_layers(models::VisionTransformer& model, const std::vector<Tensor>& images,
                                           const std::map<std::string, std::string>& inputs) {
  std::vector<std::string> layers;
  std::set<std::string> points;
  for (const auto& [layer, input] : inputs) {
    layers.push_back(layer);
    points.insert(input);
  }
  const std::map<std::string, Tensor> gradients = output_gradients(model, images, layers);  // owns the weights, too
  const Moments moments(model, images, points);
  std::map<std::string, Tensor> before;
  for (const auto& [layer, input] : inputs) {
    const Tensor weight = model.parameter(layer + ".weight");
    before.emplace(layer, weight.clone());
    const Tensor* const moment = moments.of(input);
    if (!moment || moment->size(0) != weight.size(1)) {
      throw Error(layer, "a traced input of " + str(weight.size(1)) + " features", input);
    }
    if (weights::first_non_finite(*moment)) throw Error(layer, "finite inputs", "NaN or infinity in " + input);
    round_weight(weight, *moment, gradients.at(layer));
  }
  return before;
}

}  // namespace

QuantizedTensor to_int8(const Tensor& weight) {
  if (weight.rank() != 2) throw Error("int8 weight", "[out, in]", weight.shape().to_string());
  const Tensor dense = weight.to(DType::f32).contiguous();
  const int64_t out = dense.size(0), in = dense.size(1);
  if (const auto at = weights::first_non_finite(dense)) {
    throw Error(str("int8 weight [", *at / in, ", ", *at % in, "]"), "a finite number", str(dense.data<float>()[*at]));
  }
  QuantizedTensor result{Tensor::empty({out, in}, DType::i8), Tensor::empty({out})};
  for (int64_t r = 0; r < out; ++r) {
    result.scales.data<float>()[r] =
        kernels::quantize_weight_row(dense.data<float>() + r * in, in, result.values.data<int8_t>() + r * in);
  }
  return result;
}

QuantizedTensor with_correction(const Tensor& original, const Tensor& rounded) {
  const Tensor error = original.clone();
  for (int64_t i = 0; i < error.numel(); ++i) error.data<float>()[i] -= rounded.data<float>()[i];
  QuantizedTensor result = to_int8(rounded);
  result.correction = std::make_shared<const QuantizedTensor>(to_int8(error));
  return result;
}

std::map<std::string, Tensor> gptq_round(models::VisionTransformer& model, const std::vector<Tensor>& images) {
  std::map<std::string, Tensor> before;
  const int64_t at_once = blocks_at_once(model);
  for (int64_t first = 0; first < model.config().depth; first += at_once) {
    std::map<std::string, std::string> inputs;
    for (int64_t block = first; block < std::min(first + at_once, model.config().depth); ++block) {
      inputs.merge(inputs_of(model, block));
    }
    before.merge(round_layers(model, images, inputs));
  }
  return before;
}

}  // namespace vitrail::quantize

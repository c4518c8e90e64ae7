#include "vitrail/infer/int8_rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "vitrail/base/cholesky.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/infer/layer_inputs.h"
#include "vitrail/kernels/int8_weight.h"
#include "vitrail/kernels/linear.h"
#include "vitrail/nn/trace.h"
#include "vitrail/weights/finite.h"

namespace vitrail::infer {
namespace {

// Xᵀ X [in, in] of what a layer reads, tokens that are read alone weighted, by the traced point that gives it.
class Moments {
 public:
  // Of the points whose names are wanted, all of them not behind `block`.
  Moments(const models::VisionTransformer& model, const std::vector<Tensor>& images, int64_t block,
          const std::vector<std::string>& wanted)
      : read_alone_(tokens_read_alone(model)) {
    const nn::TraceScope scope([&](const std::string& name, const Tensor& tensor) {
      if (std::find(wanted.begin(), wanted.end(), name) != wanted.end()) add(name, tensor.to(DType::f32).contiguous());
    });
    for (const Tensor& batch : images) model.intermediate(batch, block, false);
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
    const Tensor weighted = weigh(x);
    kernels::gemm(true, false, in, in, rows, weighted.data<float>(), in, x.data<float>(), in, true,
                  moment.data<float>(), in);
  }
  Tensor weigh(const Tensor& x) const {
    const Tensor weighted = x.clone();
    const int64_t in = x.size(2);
    for (int64_t image = 0; image < x.size(0); ++image) {
      float* const tokens = weighted.data<float>() + image * x.size(1) * in;
      std::transform(tokens, tokens + read_alone_ * in, tokens, [](float value) { return kReadAloneWeight * value; });
    }
    return weighted;
  }

  int64_t read_alone_;
  std::map<std::string, Tensor> moments_;
};

// The inputs of a layer in the order in which they are decided, from the last to the first: who weighs most comes first
// of all, while the others can still make up for it.  factor is that of the moments in this order.
struct InputOrder {
  std::vector<int64_t> inputs;
  std::vector<double> factor;
};

InputOrder order_of(const Tensor& moment) {
  const int64_t n = moment.size(0);
  const float* const m = moment.data<float>();
  InputOrder order{std::vector<int64_t>(static_cast<size_t>(n)), std::vector<double>(static_cast<size_t>(n * n))};
  std::iota(order.inputs.begin(), order.inputs.end(), 0);
  std::stable_sort(order.inputs.begin(), order.inputs.end(),
                   [&](int64_t a, int64_t b) { return m[a * n + a] < m[b * n + b]; });
  double mean = 0;
  for (int64_t i = 0; i < n; ++i) mean += m[i * n + i] / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < n; ++k) order.factor[i * n + k] = m[order.inputs[i] * n + order.inputs[k]];
    order.factor[i * n + i] += 0.01 * mean + 1e-30;  // few pictures do not say all: GPTQ's dampening
  }
  order.factor = cholesky(std::move(order.factor), n);
  return order;
}

// Rounds rows of one layer.  With errors e, what the layer gives is off by |Lᵀ e|; its i-th element depends on inputs i
// and later ones, so each input's number is the nearest to what makes that element vanish.
class RowRounder {
 public:
  explicit RowRounder(const InputOrder& order)
      : most_pair_(kernels::most_int8_pair()),
        order_(order),
        carried_(order.inputs.size()),
        numbers_(order.inputs.size()),
        best_(order.inputs.size()) {}

  // A step that is too small for the heaviest weights serves all the others better.
  void round(float* row) {
    constexpr float kShares[] = {1.0f, 0.93f, 0.86f, 0.79f, 0.72f, 0.65f, 0.58f};
    const auto n = static_cast<int64_t>(numbers_.size());
    const float widest = kernels::weight_numbers(row, n, numbers_.data());
    if (!(widest > 0)) return;
    float best_step = 0;
    double least = std::numeric_limits<double>::infinity();
    for (const float share : kShares) {
      const double error = choose_numbers(row, share * widest);
      if (error >= least) continue;
      least = error;
      best_step = share * widest;
      best_.swap(numbers_);
    }
    for (int64_t c = 0; c < n; ++c) row[c] = best_step * static_cast<float>(best_[c]);
  }

 private:
  // Fills numbers_; gives |Lᵀ e|².
  double choose_numbers(const float* row, double step) {
    const auto n = static_cast<int64_t>(numbers_.size());
    std::fill(carried_.begin(), carried_.end(), 0.0);
    std::fill(numbers_.begin(), numbers_.end(), int8_t{0});
    double squares = 0;
    for (int64_t i = n - 1; i >= 0; --i) {
      const double* const factor = order_.factor.data() + i * n;
      const int64_t input = order_.inputs[i], neighbour = input ^ 1;
      const int beside = neighbour < n ? numbers_[neighbour] : 0;  // 0 where it is still to come
      const double most = std::min(kernels::kMostInt8, most_pair_ - std::max(beside, 0)),
                   least = -std::min(kernels::kMostInt8, most_pair_ + std::min(beside, 0));
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
  const InputOrder& order_;
  std::vector<double> carried_;
  std::vector<int8_t> numbers_, best_;
};

void round_weight(const Tensor& weight, const Tensor& moment) {
  const InputOrder order = order_of(moment);
  const int64_t in = weight.size(1);
  parallel_for(0, weight.size(0), 1, [&](int64_t first, int64_t last) {
    RowRounder rounder(order);
    for (int64_t r = first; r < last; ++r) rounder.round(weight.data<float>() + r * in);
  });
}

}  // namespace

weights::Int8Weight to_int8(const Tensor& weight) {
  if (weight.rank() != 2) throw Error("int8 weight", "[out, in]", weight.shape().to_string());
  const Tensor dense = weight.to(DType::f32).contiguous();
  const int64_t out = dense.size(0), in = dense.size(1);
  if (const auto at = weights::first_non_finite(dense)) {
    throw Error(str("int8 weight [", *at / in, ", ", *at % in, "]"), "a finite number", str(dense.data<float>()[*at]));
  }
  weights::Int8Weight result{Tensor::empty({out, in}, DType::i8), Tensor::empty({out})};
  for (int64_t r = 0; r < out; ++r) {
    result.scales.data<float>()[r] =
        kernels::weight_numbers(dense.data<float>() + r * in, in, result.numbers.data<int8_t>() + r * in);
  }
  return result;
}

std::map<std::string, Tensor> round_weights(models::VisionTransformer& model, const std::vector<Tensor>& images) {
  model.requires_grad(true);  // its parameters are to be written to: none is a mapped file's any more
  model.requires_grad(false);
  std::map<std::string, Tensor> before;
  for (int64_t block = 0; block < model.config().depth; ++block) {
    const std::map<std::string, std::string> inputs = inputs_of(model, block);
    std::vector<std::string> wanted;
    for (const auto& [layer, input] : inputs) wanted.push_back(input);
    const Moments moments(model, images, block, wanted);
    for (const auto& [layer, input] : inputs) {
      const Tensor weight = model.parameter(layer + ".weight");
      before.emplace(layer, weight.clone());
      const Tensor* const moment = moments.of(input);
      if (!moment || moment->size(0) != weight.size(1)) {
        throw Error(layer, "a traced input of " + str(weight.size(1)) + " features", input);
      }
      if (weights::first_non_finite(*moment)) throw Error(layer, "finite inputs", "NaN or infinity in " + input);
      round_weight(weight, *moment);
    }
  }
  return before;
}

}  // namespace vitrail::infer

// SPDX-License-Identifier: Apache-2.0
// Compiled programs of random operations against the eager operations: fused residuals, shared buffers, views and
// results that are written into concatenations occur in every combination.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/golden.h"
#include "vitrail/base/random.h"
#include "vitrail/infer/function_session.h"
#include "vitrail/nn/linear.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/attention.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::infer {
namespace {

using kernels::Activation;

// Appends random operations to a list of values [B, N, C].  The choices depend on the seed and on shapes alone, so that
// they are the same for tensors with data and for recorded ones.
class RandomFunction {
 public:
  explicit RandomFunction(uint64_t seed) : random_(seed), seed_(seed) {}

  std::vector<Tensor> results(const Tensor& x) {
    values_ = {ops::linear(x, weight(6, x.size(2)), weight(6)), x};
    for (int step = 0; step < 14; ++step) values_.push_back(next(any()));
    // The last value, which is computed, and one that later operations may have read.
    return {ops::add(values_.back(), weight(1)), ops::contiguous(values_[0]), ops::mul(any(), weight(1))};
  }

 private:
  int64_t below(int64_t n) { return random_.bits() % n; }
  Tensor any() { return values_[static_cast<size_t>(below(std::ssize(values_)))]; }
  // Another value of this shape, or the value itself.
  Tensor like(const Tensor& value) {
    const Tensor other = any();
    return other.shape() == value.shape() ? other : value;
  }
  Tensor weight(int64_t n) { return Tensor::randn({n}, ++seed_); }
  // A weight of this scale keeps the size of its inputs.
  Tensor weight(int64_t out, int64_t in) {
    return ops::mul(Tensor::randn({out, in}, ++seed_), Tensor::full({1}, 1 / std::sqrt(static_cast<double>(in))));
  }

  Tensor next(const Tensor& a) {
    const int64_t tokens = a.size(1), width = a.size(2);
    switch (below(13)) {
      case 0:
        return ops::linear(a, weight(1 + below(9), width), {}, below(2) ? Activation::relu : Activation::none);
      case 1:
        return ops::add(a, like(a));
      case 2:
        return ops::mul(a, weight(width));
      case 3:
      case 4:
        return ops::residual_add(like(a), ops::linear(a, weight(width, width), weight(width)),
                                 below(2) ? weight(width) : Tensor());
      case 5:
        return ops::layer_norm(a, weight(width), below(2) ? weight(width) : Tensor(), 1e-3);
      case 6:
        return ops::activation(a, Activation::tanh);
      case 7:
        return tokens > 40 ? a : ops::cat({ops::add(a, weight(width)), like(a), ops::add(like(a), a)}, 1);
      case 8:
        return width > 40 ? a : ops::cat({a, like(a)}, 2);
      case 9: {
        const int64_t first = below(tokens);
        return a.narrow(1, first, 1 + below(tokens - first));
      }
      case 10:
        return a.transpose(1, 2);
      case 11:
        return ops::mean(a, 1).unsqueeze(1);
      default:
        return ops::attention(a.unsqueeze(1), like(a).unsqueeze(1), a.unsqueeze(1), 0.5).out;
    }
  }

  RandomStream random_;
  uint64_t seed_;
  std::vector<Tensor> values_;
};

double largest(const Tensor& t) {
  double result = 1;
  for (int64_t i = 0; i < t.numel(); ++i) result = std::max(result, std::abs(double{t.data<float>()[i]}));
  return result;
}

// Each value is the sum of some dozens of rounded terms, and residuals and products of several steps add up.
TEST(RandomProgram, ComputesWhatTheEagerOperationsDo) {
  RandomParams params;
  nn::Linear unused(1, 1, false, ParamSource(params));
  const Tensor x = Tensor::randn({3, 5, 4}, 1);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const std::vector<Tensor> want = RandomFunction(seed).results(x);
    for (const bool split_batch : {false, true}) {
      const FunctionSession session(unused,
                                    [seed](const NamedTensors& inputs) {
                                      NamedTensors outputs;
                                      for (const Tensor& result : RandomFunction(seed).results(inputs[0].tensor))
                                        outputs.push_back({std::to_string(outputs.size()), result});
                                      return outputs;
                                    },
                                    {.threads = 2, .split_batch = split_batch});
      for (int run = 0; run < 2; ++run) {
        const NamedTensors got = session.run({{"x", x}});
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_TRUE(testing::close(got[i].tensor, want[i], 1e-4 * largest(want[i])))
              << "seed " << seed << ", result " << i << ", run " << run << "\n"
              << session.listing({{"x", x}});
        }
      }
    }
  }
}

}  // namespace
}  // namespace vitrail::infer

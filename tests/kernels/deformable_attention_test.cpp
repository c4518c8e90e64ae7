// SPDX-License-Identifier: Apache-2.0
// Deformable attention and its gradients on every instruction set, against the version in double; and that version
// against the definition.
#include "vitrail/kernels/attention/deformable_attention.h"

#include "tests/kernels/kernel_testing.h"
#include "vitrail/base/parallel.h"

namespace vitrail::kernels {
namespace {

using testing::Buffer;
using testing::for_each_isa;
using testing::kEps;
using testing::random_floats;
using testing::widened;

constexpr std::array<std::array<int64_t, 2>, 2> kLevels{{{3, 5}, {2, 1}}};
constexpr int64_t kSampledImages = 2, kQueries = 3, kSampledHeads = 2, kPoints = 4, kCells = 17;
constexpr int64_t kRows = kSampledImages * kQueries * kSampledHeads, kSamples = kRows * 2 * kPoints;

struct Inputs {
  std::vector<float> values, locations, weights, grad;

  explicit Inputs(int64_t head_dim)
      : values(random_floats(kSampledImages * kCells * kSampledHeads * head_dim, 1)),
        locations(random_floats(kSamples * 2, 2, 0.6F)),  // a third of them outside
        weights(random_floats(kSamples, 3)),
        grad(random_floats(kRows * head_dim, 4)) {
    for (float& at : locations) at += 0.5F;
  }
};

template <class T>
DeformableAttentionArgs<T> args_of(int64_t head_dim, const T* values, const T* locations, const T* weights) {
  return {kSampledImages, kQueries, kSampledHeads, head_dim, kPoints, kLevels, values, locations, weights};
}

// The value of a map whose cells are tents: max(0, 1 − |x|) · max(0, 1 − |y|) from their centres.
double by_definition(const Inputs& in, int64_t head_dim, int64_t row, int64_t channel) {
  const int64_t image = row / (kQueries * kSampledHeads), head = row % kSampledHeads;
  double sum = 0;
  int64_t first = 0;
  for (size_t level = 0; level < kLevels.size(); ++level) {
    const auto [height, width] = kLevels[level];
    for (int64_t point = 0; point < kPoints; ++point) {
      const auto sample = static_cast<size_t>((row * 2 + static_cast<int64_t>(level)) * kPoints + point);
      for (int64_t cell = 0; cell < height * width; ++cell) {
        const double x = static_cast<double>(in.locations[2 * sample]) * static_cast<double>(width) - 0.5,
                     y = static_cast<double>(in.locations[2 * sample + 1]) * static_cast<double>(height) - 0.5;
        const double tent = std::max(0.0, 1 - std::abs(x - static_cast<double>(cell % width))) *
                            std::max(0.0, 1 - std::abs(y - static_cast<double>(cell / width)));
        sum += in.weights[sample] * tent *
               in.values[static_cast<size_t>(((image * kCells + first + cell) * kSampledHeads + head) * head_dim +
                                             channel)];
      }
    }
    first += height * width;
  }
  return sum;
}

TEST(DeformableAttentionKernel, TheVersionInDoubleIsTheDefinition) {
  constexpr int64_t kDim = 3;
  const Inputs in(kDim);
  const std::vector<double> values = widened(in.values), locations = widened(in.locations),
                            weights = widened(in.weights);
  std::vector<double> out(static_cast<size_t>(kRows * kDim), 9);
  deformable_attention(args_of(kDim, values.data(), locations.data(), weights.data()), out.data());
  for (int64_t i = 0; i < kRows * kDim; ++i)
    EXPECT_NEAR(out[static_cast<size_t>(i)], by_definition(in, kDim, i / kDim, i % kDim), 1e-12) << i;
}

// A result is a sum of 8 · 4 products of values below 5 in size, and locations are exact to 5 ε.
constexpr double kSampleTolerance = 32 * 5 * 5 * kEps;

TEST(DeformableAttentionKernel, MatchesTheDoubleReferenceOnEveryIsa) {
  for_each_isa([](Isa) {
    for (const int64_t head_dim : testing::kAwkwardLengths) {
      const Inputs in(head_dim);
      const std::vector<double> values = widened(in.values), locations = widened(in.locations),
                                weights = widened(in.weights);
      std::vector<double> want(static_cast<size_t>(kRows * head_dim));
      deformable_attention(args_of(head_dim, values.data(), locations.data(), weights.data()), want.data());
      const Buffer from(in.values, 1), at(in.locations, 3), by(in.weights, 2);
      Buffer to(kRows * head_dim, 1);
      deformable_attention(args_of(head_dim, from.data(), at.data(), by.data()), to.data());
      to.check();
      testing::expect_close(to.values(), want, [](int64_t) { return kSampleTolerance; });
    }
  });
}

TEST(DeformableAttentionKernel, GradientsMatchTheDoubleReferenceOnEveryIsa) {
  for_each_isa([](Isa) {
    for (const int64_t head_dim : {1, 3, 16, 33}) {
      const Inputs in(head_dim);
      const std::vector<double> values = widened(in.values), locations = widened(in.locations),
                                weights = widened(in.weights), grad = widened(in.grad);
      std::vector<double> by_value(values.size(), 9), by_location(locations.size(), 9), by_weight(weights.size(), 9);
      deformable_attention_backward(args_of(head_dim, values.data(), locations.data(), weights.data()), grad.data(),
                                    by_value.data(), by_location.data(), by_weight.data());
      const Buffer from(in.values, 1), at(in.locations, 3), by(in.weights, 2), given(in.grad, 1);
      Buffer of_values(std::ssize(by_value), 1), of_locations(std::ssize(by_location), 2),
          of_weights(std::ssize(by_weight), 3);
      deformable_attention_backward(args_of(head_dim, from.data(), at.data(), by.data()), given.data(),
                                    of_values.data(), of_locations.data(), of_weights.data());
      for (const Buffer* written : {&of_values, &of_locations, &of_weights}) written->check();
      const double tolerance = kSampleTolerance * static_cast<double>(head_dim);  // products of head_dim elements
      testing::expect_close(of_values.values(), by_value, [](int64_t) { return kSampleTolerance; });
      testing::expect_close(of_locations.values(), by_location, [=](int64_t) { return 5 * tolerance; });
      testing::expect_close(of_weights.values(), by_weight, [=](int64_t) { return tolerance; });
    }
  });
}

// Also far outside, where a position is no 64-bit integer.
TEST(DeformableAttentionKernel, ThereIsNothingOutside) {
  for_each_isa([](Isa) {
    constexpr int64_t kDim = 4;
    Inputs in(kDim);
    const std::array kOutside{-1.0F, 2.0F, 1e30F, -1e30F, testing::kInfinity, std::nanf("")};
    for (size_t i = 0; i < in.locations.size(); i += 2) in.locations[i] = kOutside[i / 2 % kOutside.size()];
    std::vector<float> out(static_cast<size_t>(kRows * kDim), 9), by_value(in.values.size(), 9),
        by_location(in.locations.size(), 9), by_weight(in.weights.size(), 9);
    const auto args = args_of(kDim, in.values.data(), in.locations.data(), in.weights.data());
    deformable_attention(args, out.data());
    deformable_attention_backward(args, in.grad.data(), by_value.data(), by_location.data(), by_weight.data());
    for (const std::vector<float>* zeros : {&out, &by_value, &by_location, &by_weight})
      EXPECT_EQ(*zeros, std::vector<float>(zeros->size(), 0.0F));
  });
}

TEST(DeformableAttentionKernel, DoesNotDependOnThreads) {
  constexpr int64_t kDim = 16;
  const Inputs in(kDim);
  const auto args = args_of(kDim, in.values.data(), in.locations.data(), in.weights.data());
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 3}) {
    const ThreadCount count(threads);
    std::vector<float> out(static_cast<size_t>(kRows * kDim)), by_value(in.values.size()),
        by_location(in.locations.size()), by_weight(in.weights.size());
    deformable_attention(args, out.data());
    deformable_attention_backward(args, in.grad.data(), by_value.data(), by_location.data(), by_weight.data());
    out.insert(out.end(), by_value.begin(), by_value.end());
    out.insert(out.end(), by_location.begin(), by_location.end());
    results.push_back(std::move(out));
  }
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace vitrail::kernels

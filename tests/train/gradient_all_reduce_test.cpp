// SPDX-License-Identifier: Apache-2.0
// Sums of gradients over threads as processes, for every pass in which a gradient may have come.
#include "vitrail/train/run/gradient_all_reduce_internal.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "tests/dist/thread_communicator.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/loss.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::train {
namespace {

using TwoFloats = std::array<float, 2>;
using ReducedGradients = std::array<std::optional<float>, 2>;

// What two parameters of one element get in a step; 0 is a pass that does not touch the parameter.
struct ReducedStep {
  TwoFloats early{}, last{};  // in an earlier micro-batch, and in the pass that makes the gradients final
};

class TwoParameters {
 public:
  explicit TwoParameters(const ProcessGroup& group) : all_reduce_(group, parameters_), factor_(group.rank() + 1) {}

  // The gradients after a step.  The process adds (rank + 1) times what the step says.
  ReducedGradients run(const ReducedStep& step) {
    add(step.early, {});
    if (step.last != TwoFloats{}) add(step.last, all_reduce_.begin());  // else the last pass has failed
    all_reduce_.finish();
    ReducedGradients result;
    for (size_t i = 0; i < 2; ++i) {
      const Tensor gradient = autograd::grad_of(parameters_[i].tensor);
      if (gradient.defined()) result[i] = gradient.data<float>()[0];
      autograd::clear_grad(parameters_[i].tensor);
    }
    return result;
  }
  int64_t buckets() const { return all_reduce_.stats().buckets; }

 private:
  static optim::Parameter leaf(const char* name) {
    Tensor tensor = Tensor::from<float>({1}, std::vector<float>{1});
    autograd::set_requires_grad(tensor, true);
    return {.name = name, .tensor = tensor};
  }

  void add(const TwoFloats& gradients, const autograd::BackwardOptions& options) {
    std::vector<Tensor> terms;
    for (size_t i = 0; i < 2; ++i) {
      if (gradients[i] == 0) continue;
      const Tensor factor = Tensor::from<float>({1}, std::vector<float>{gradients[i] * static_cast<float>(factor_)});
      terms.push_back(ops::mean(ops::mul(parameters_[i].tensor, factor), 0));
    }
    if (terms.empty()) return;
    autograd::backward(ops::weighted_sum(terms, std::vector<double>(terms.size(), 1)), {}, options);
  }

  const std::vector<optim::Parameter> parameters_{leaf("a"), leaf("b")};
  GradientAllReduce all_reduce_;
  const int factor_;
};

// Each follows another, so that what one step sent is not taken for sent in the next.
const std::vector<ReducedStep> kReducedSteps{
    {.last = {1, 2}},  {.early = {0, 5}, .last = {3, 0}}, {.early = {7, 0}, .last = {0, 4}},
    {.early = {1, 2}}, {.early = {2, 3}, .last = {1, 1}}, {.last = {6, 0}}};

TEST(GradientAllReduce, SumsWhatAnyPassOfAStepHasLeft) {
  std::array<std::vector<ReducedGradients>, 2> results;
  std::array<int64_t, 2> buckets{};
  dist::testing::run_ranks(2, [&](const std::shared_ptr<dist::Communicator>& communicator) {
    const auto rank = static_cast<size_t>(communicator->rank());
    const ProcessGroup group(communicator);
    TwoParameters parameters(group);
    for (const ReducedStep& step : kReducedSteps) results[rank].push_back(parameters.run(step));
    buckets[rank] = parameters.buckets();
  });
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(buckets[rank], std::ssize(kReducedSteps));
    for (size_t s = 0; s < kReducedSteps.size(); ++s) {
      for (size_t i = 0; i < 2; ++i) {
        const float one = kReducedSteps[s].early[i] + kReducedSteps[s].last[i];
        const std::optional<float> expected = one == 0 ? std::nullopt : std::optional(one + 2 * one);
        EXPECT_EQ(results[rank][s][i], expected) << "rank " << rank << ", step " << s << ", parameter " << i;
      }
    }
  }
}

TEST(GradientAllReduce, OfOneProcessLeavesTheGradients) {
  const ProcessGroup alone(nullptr);
  TwoParameters parameters(alone);
  EXPECT_EQ(parameters.run({.early = {2, 3}, .last = {1, 0}}), (ReducedGradients{3, 3}));
  EXPECT_EQ(parameters.buckets(), 0);
}

}  // namespace
}  // namespace vitrail::train

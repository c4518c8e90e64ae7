// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sums the gradients of a training step over all processes while its last backward pass runs.
#include <unordered_map>
#include <vector>

#include "vitrail/autograd/engine.h"
#include "vitrail/dist/gradient_reducer.h"
#include "vitrail/optim/parameter_groups.h"
#include "vitrail/train/run/process_group_internal.h"

namespace vitrail::train {

class GradientAllReduce {
 public:
  GradientAllReduce(const ProcessGroup& group, const std::vector<optim::Parameter>& parameters);

  // Starts the all-reduce of a step.  Returns the options of the backward pass that makes the gradients final.
  // With one process all members do nothing.
  autograd::BackwardOptions begin();

  // Sends the gradients that the last backward pass did not touch (an earlier micro-batch may have) and waits.  Every
  // process must call it at the end of each step, also after a failed backward pass: the others wait for its gradients.
  void finish();

  dist::ReducerStats stats() const { return reducer_.total(); }

 private:
  void send(size_t index, const Tensor& gradient);

  const std::vector<optim::Parameter>& parameters_;
  bool distributed_;      // more than one process
  bool started_ = false;  // between begin() and finish()
  std::vector<bool> sent_;
  std::unordered_map<const AutogradSlot*, size_t> index_of_;
  dist::GradientReducer reducer_;
};

}  // namespace vitrail::train

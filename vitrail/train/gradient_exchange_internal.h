// SPDX-License-Identifier: Apache-2.0
#pragma once
// A step's gradients, summed over the processes of a run while its last backward pass still runs.
#include <unordered_map>
#include <vector>

#include "vitrail/autograd/engine.h"
#include "vitrail/dist/gradient_reducer.h"
#include "vitrail/optim/parameter_groups.h"
#include "vitrail/train/process_group_internal.h"

namespace vitrail::train {

class GradientExchange {
 public:
  GradientExchange(const ProcessGroup& crew, const std::vector<optim::Parameter>& parameters);

  // Begins, and gives the options of the backward pass that makes the gradients final.  One process: nothing to do.
  autograd::BackwardOptions begin();
  // Sends what no pass has sent, such as what an earlier batch of the step left alone, and waits.  In all processes, at
  // each step's end, and when a backward pass fails: the others would wait for ever for what this one owes them.
  void complete();

  dist::ReducerTimes times() const { return reducer_.total(); }

 private:
  void send(size_t index, const Tensor& gradient);

  const std::vector<optim::Parameter>& parameters_;
  bool several_, begun_ = false;
  std::vector<bool> sent_;
  std::unordered_map<const AutogradSlot*, size_t> index_of_;
  dist::GradientReducer reducer_;
};

}  // namespace vitrail::train

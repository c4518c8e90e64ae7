// SPDX-License-Identifier: Apache-2.0
#pragma once
// Averages gradients over all processes while the backward pass still runs (Li et al. 2020, "PyTorch Distributed").
#include <memory>
#include <vector>

#include "vitrail/dist/communicator.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::dist {

struct ReducerOptions {
  int64_t bucket_bytes = int64_t{4} << 20;  // gradients travel together until they are this much
  bool average = true;                      // else the sum
};

// Of one pass, or of all since the reducer was made.
struct ReducerTimes {
  int64_t buckets = 0, bytes = 0;
  double communication = 0;  // seconds in which buckets were being exchanged
  double overlapped = 0;     // of these, while the backward pass still ran
  double waited = 0;         // seconds that finish() waited
};

// Buckets are filled in the reverse order of the parameters (the order in which a backward pass ends them), fixed when
// the reducer is made, and sent in that order, whatever the order in which gradients come: all processes do the same.
// One thread of the reducer's own communicates; between begin() and finish() nobody else may use the communicator.
// With one process nothing is done.
class GradientReducer {
 public:
  // `parameters`: their shapes and dtypes (f32 or f64) count, the same in every process, and the autograd slots by
  // which ready() knows them.
  GradientReducer(std::shared_ptr<Communicator> communicator, const std::vector<Tensor>& parameters,
                  const ReducerOptions& options = {});
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  void begin();  // before the backward pass
  // The gradient of parameter `index` is final.  It is contiguous, and its memory holds the average after finish().
  // Called at most once for each parameter in a pass, from one thread.
  void ready(size_t index, const Tensor& gradient);
  // The same for the parameter with this slot, as the engine names it:
  //   backward(loss, {}, {.on_leaf = [&](Variable& leaf) { reducer.ready(leaf, leaf.grad); }})
  void ready(const AutogradSlot& leaf, const Tensor& gradient);
  // Sends what is left (parameters without a gradient count as zeros) and waits.  Rethrows what failed on the thread.
  void finish();

  size_t buckets() const;
  ReducerTimes last() const;   // of the last finished pass
  ReducerTimes total() const;  // of all of them

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vitrail::dist

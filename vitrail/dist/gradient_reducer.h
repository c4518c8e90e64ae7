// SPDX-License-Identifier: Apache-2.0
#pragma once
// Averages gradients over all processes while the backward pass still runs (Li et al. 2020, "PyTorch Distributed:
// Experiences on Accelerating Data Parallel Training").
#include <memory>
#include <vector>

#include "vitrail/dist/communicator.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::dist {

struct ReducerOptions {
  int64_t bucket_bytes = int64_t{4} << 20;  // a bucket is all-reduced when it holds this much
  bool average = true;                      // false: the sum over the processes
};

// Statistics of one backward pass, or the total over all passes.
struct ReducerStats {
  int64_t buckets = 0, bytes = 0;
  double communication_seconds = 0;  // in all-reduces
  double overlapped_seconds = 0;     // the part of communication_seconds during the backward pass
  double wait_seconds = 0;           // waiting in finish() for the remaining buckets
};

// Packs gradients into buckets and all-reduces each bucket on a communication thread.
//
// The partition into buckets is fixed at construction.  Buckets are filled in reverse order of the parameters, about
// the order in which a backward pass completes the gradients, and always reduced in this order, so that all processes
// agree. Between begin() and finish() nothing else may use the communicator.  With one process the reducer does
// nothing.
class GradientReducer {
 public:
  // `parameters`: f32 or f64, with the same shapes and dtypes in every process.  Throws Error for another dtype.
  GradientReducer(std::shared_ptr<Communicator> communicator, const std::vector<Tensor>& parameters,
                  const ReducerOptions& options = {});
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Starts a pass.  Call it before the backward pass.
  void begin();
  // Announces that the gradient of parameter `index` is final.  The gradient is contiguous; after finish() its memory
  // holds the average.  Call it at most once per parameter and pass, always from the same thread.
  void ready(size_t index, const Tensor& gradient);
  // The same for the parameter with this autograd slot, for use in the engine's callback:
  //   backward(loss, {}, {.on_leaf = [&](Variable& leaf) { reducer.ready(leaf, leaf.grad); }})
  void ready(const AutogradSlot& leaf, const Tensor& gradient);
  // Flushes the remaining buckets, where a parameter without a gradient counts as zeros, and waits for all of them.
  // Rethrows the exception of a failed all-reduce.
  void finish();

  ReducerStats last_pass() const;
  ReducerStats total() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vitrail::dist

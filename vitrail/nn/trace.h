// SPDX-License-Identifier: Apache-2.0
#pragma once
// Traces of a forward pass: layers report named intermediate results to a callback.
#include <functional>
#include <string>

#include "vitrail/nn/module.h"

namespace vitrail::nn {

// Receives each result when it is computed: "blocks.0.attn.scores" and the tensor.
using TraceCallback = std::function<void(const std::string& name, const Tensor& tensor)>;

// While it lives, layers on this thread report to the callback and use unfused operations, so that every step of a
// formula has a value.  Throws Error if another scope is active on the thread.
class TraceScope {
 public:
  explicit TraceScope(TraceCallback callback);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;
};

bool tracing();  // true if a trace is active on this thread

// Reports `tensor` as "<path of module>.<name>" if a trace is active.
void trace(const Module& module, const char* name, const Tensor& tensor);

}  // namespace vitrail::nn

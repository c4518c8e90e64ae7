// SPDX-License-Identifier: Apache-2.0
#pragma once
// Looking inside a forward pass: named intermediate results, handed to whoever asked for them.
#include <functional>
#include <string>

#include "vitrail/nn/module.h"

namespace vitrail::nn {

// Gets each result as it appears: "blocks.0.attn.scores" and the tensor.
using TraceCallback = std::function<void(const std::string& name, const Tensor& tensor)>;

// While it lives, layers on this thread report to the callback and run the unfused mathematics, so that every step of
// the formula has its value.  Traces do not nest.
class TraceScope {
 public:
  explicit TraceScope(TraceCallback callback);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;
};

bool tracing();

// Reports `tensor` as "<path of module>.<name>"; nothing when no trace is on.
void trace(const Module& module, const char* name, const Tensor& tensor);

}  // namespace vitrail::nn

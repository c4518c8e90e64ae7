// SPDX-License-Identifier: Apache-2.0
#pragma once
// Traces of a forward pass: modules report their outputs, and layers the steps of their formulas, to a callback.
#include <functional>
#include <string>

#include "vitrail/nn/module.h"

namespace vitrail::nn {

// Receives each result when it is computed.  Its name is the path of a module in timm's tree ("blocks.0.mlp.fc1"; the
// tensor is what a forward hook of PyTorch gets) or of a step inside it ("blocks.0.attn.scores").  A module that does
// nothing in this model, such as dropout in eval mode, reports the tensor that it passes on.
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

// Reports a module's output under its path if a trace is active, and returns it.  The root, whose path is empty, has
// no name.
Tensor traced(const Module& module, Tensor output);

}  // namespace vitrail::nn

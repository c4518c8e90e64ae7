// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/trace.h"

#include "vitrail/base/error.h"

namespace vitrail::nn {
namespace {

thread_local TraceCallback active;

}  // namespace

TraceScope::TraceScope(TraceCallback callback) {
  if (active) throw Error("trace", "one trace at a time on a thread", "a second");
  active = std::move(callback);
}
TraceScope::~TraceScope() { active = nullptr; }

bool tracing() { return static_cast<bool>(active); }

void trace(const Module& module, const char* name, const Tensor& tensor) {
  if (active) active(module.path().empty() ? name : module.path() + "." + name, tensor);
}

Tensor traced(const Module& module, Tensor output) {
  if (active && !module.path().empty()) active(module.path(), output);
  return output;
}

}  // namespace vitrail::nn

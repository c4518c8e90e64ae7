// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/recorder.h"

#include "vitrail/base/error.h"

namespace vitrail::ops {
namespace {

thread_local Recorder* active_recorder = nullptr;

}  // namespace

double flops_of(const std::vector<RecordedOperation>& operations) {
  double flops = 0;
  for (const RecordedOperation& recorded : operations) flops += recorded.operation->flops;
  return flops;
}

Recorder::Recorder() {
  if (active_recorder) throw Error("recorder", "one recorder at a time on a thread", "a second");
  active_recorder = this;
}
Recorder::~Recorder() { active_recorder = nullptr; }

void record(RecordedOperation operation) {
  if (active_recorder) active_recorder->operations_.push_back(std::move(operation));
}

void annotate_tokens(const Tensor& x, const TokenRoles& roles) {
  if (active_recorder && x.is_meta()) active_recorder->token_roles_[x.storage().get()] = roles;
}

}  // namespace vitrail::ops

// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/recorder.h"

#include <array>

#include "vitrail/base/error.h"

namespace vitrail::ops {
namespace {

thread_local Recorder* active_recorder = nullptr;
constexpr std::array kNames{"linear",   "layer_norm", "rms_norm",     "residual_add", "attention", "rotary",
                            "patchify", "activation", "silu_gate",    "add",          "mul",       "cat",
                            "mean",     "copy",       "merge_tokens", "embedding",    "custom"};
static_assert(kNames.size() == static_cast<size_t>(OpKind::custom) + 1, "one name per kind, in the enum's order");

}  // namespace

const char* name_of(OpKind kind) { return kNames[static_cast<size_t>(kind)]; }

double flops_of(const Operation& operation) {
  const std::vector<Tensor>& in = operation.inputs;
  const auto elements = static_cast<double>(in[0].numel());
  switch (operation.kind) {
    case OpKind::linear:
      return 2 * elements * static_cast<double>(in[1].size(0));
    case OpKind::attention:
      return 4 * elements * static_cast<double>(in[1].size(2));
    case OpKind::merge_tokens: {  // similarities of all pairs between the two halves, by the mean key of the heads
      const auto half = static_cast<double>(in[0].size(1)) / 2;
      return 2 * static_cast<double>(in[0].size(0) * in[1].size(3)) * half * half;
    }
    case OpKind::custom:
      return operation.attributes.custom->flops;
    case OpKind::layer_norm:
    case OpKind::rms_norm:
    case OpKind::residual_add:
    case OpKind::rotary:
    case OpKind::patchify:
    case OpKind::activation:
    case OpKind::silu_gate:
    case OpKind::add:
    case OpKind::mul:
    case OpKind::cat:
    case OpKind::mean:
    case OpKind::copy:
    case OpKind::embedding:
      return 0;
  }
  return 0;
}

double flops_of(const std::vector<Operation>& operations) {
  double flops = 0;
  for (const Operation& operation : operations) flops += flops_of(operation);
  return flops;
}

Recorder::Recorder() {
  if (active_recorder) throw Error("recorder", "one recorder at a time on a thread", "a second");
  active_recorder = this;
}
Recorder::~Recorder() { active_recorder = nullptr; }

bool symbolic(std::initializer_list<const Tensor*> inputs) {
  for (const Tensor* input : inputs) {
    if (input->defined() && input->is_meta()) return true;
  }
  return false;
}

Tensor symbolic_result(const Shape& shape, DType dtype) { return Tensor::empty(shape, dtype, Device::meta); }

void record(OpKind kind, std::vector<Tensor> inputs, std::vector<Tensor> outputs, const OpAttributes& attributes) {
  if (active_recorder)
    active_recorder->operations_.push_back({kind, std::move(inputs), std::move(outputs), attributes});
}

void annotate_tokens(const Tensor& x, const TokenRoles& roles) {
  if (active_recorder && x.is_meta()) active_recorder->token_roles_[x.storage().get()] = roles;
}

}  // namespace vitrail::ops

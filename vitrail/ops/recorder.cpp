#include "vitrail/ops/recorder.h"

#include <array>

#include "vitrail/base/error.h"

namespace vitrail::ops {
namespace {

thread_local Recorder* active = nullptr;
constexpr std::array kNames{"linear", "layer_norm", "residual_add", "attention", "patchify", "activation",  "silu_gate",
                            "add",    "mul",        "cat",          "mean",      "copy",     "merge_tokens"};

}  // namespace

const char* name_of(OpKind kind) { return kNames[static_cast<size_t>(kind)]; }

Recorder::Recorder() {
  if (active) throw Error("recorder", "one recorder at a time on a thread", "a second");
  active = this;
}
Recorder::~Recorder() { active = nullptr; }

bool symbolic(std::initializer_list<const Tensor*> inputs) {
  for (const Tensor* input : inputs) {
    if (input->defined() && input->is_meta()) return true;
  }
  return false;
}

Tensor symbolic_result(const Shape& shape, DType dtype) { return Tensor::empty(shape, dtype, Device::meta); }

void record(OpKind kind, std::vector<Tensor> inputs, std::vector<Tensor> outputs, const OpAttributes& attributes) {
  if (active) active->operations_.push_back({kind, std::move(inputs), std::move(outputs), attributes});
}

}  // namespace vitrail::ops

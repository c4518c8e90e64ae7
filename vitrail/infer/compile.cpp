// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/compile.h"

#include "vitrail/base/error.h"
#include "vitrail/infer/emitter.h"

namespace vitrail::infer {

Program compile(std::vector<ops::Operation> operations, const Tensor& input, const std::vector<Tensor>& outputs,
                PackedWeights& weights, const CompileOptions& options) {
  const double model_flops = ops::flops_of(operations);
  const std::vector<FusedOperation> list = rewrite(std::move(operations), outputs);
  const BufferPlan plan(list, input, outputs);
  Emitter emitter(plan, input, weights, options);
  for (const FusedOperation& item : list) emitter.emit(item);
  std::vector<ProgramOutput> places;
  for (const Tensor& output : outputs) {
    if (!output.is_contiguous()) throw Error("compile", "contiguous results", output.shape().to_string());
    places.push_back({output.shape(), plan.offset_of(output)});
  }
  return Program(emitter.take_steps(), std::move(places), model_flops, plan.bytes(), emitter.scratch_bytes());
}

}  // namespace vitrail::infer

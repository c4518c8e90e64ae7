// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/compile_internal.h"

#include "vitrail/base/error.h"
#include "vitrail/infer/emitter_internal.h"
#include "vitrail/infer/token_rows_internal.h"

namespace vitrail::infer {

Program compile(const ops::Recorder& recorder, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                PackedWeights& weights, const CompileOptions& options) {
  const TokenRows token_rows(recorder);
  const std::vector<FusedOperation> list = rewrite(recorder.operations(), outputs);
  const BufferPlan plan(list, inputs, outputs);
  Emitter emitter(plan, token_rows, weights, options);
  for (const FusedOperation& item : list) emitter.emit(item);
  std::vector<ProgramOutput> locations;
  for (const Tensor& output : outputs) {
    if (!plan.holds(output)) throw Error("compile", "outputs that an operation computes", "another tensor");
    if (!output.is_contiguous()) throw Error("compile", "contiguous outputs", output.shape().to_string());
    if (output.dtype() != DType::f32) throw Error("compile", "outputs in f32", name_of(output.dtype()));
    locations.push_back({output.shape(), plan.offset_of(output)});
  }
  return Program(emitter.take_steps(), std::move(locations), plan.bytes(), emitter.scratch_bytes());
}

}  // namespace vitrail::infer

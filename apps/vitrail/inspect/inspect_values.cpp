// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/inspect/inspect_values.h"

#include <optional>

#include "vitrail/base/error.h"
#include "vitrail/nn/trace.h"

namespace vitrail::app {
namespace {

// Parameters under their native names, and the tensors of the file (may be null) under their own.
void offer_weights(const nn::Module& model, const weights::Checkpoint* checkpoint, ValueListing& listing) {
  if (listing.prints_rows()) return;
  for (const nn::NamedTensor& parameter : model.named_parameters()) listing.offer(parameter.name, parameter.tensor);
  if (listing.complete() || !checkpoint) return;
  for (const weights::TensorInfo& info : checkpoint->tensors()) {
    if (info.unsupported_dtype.empty()) listing.offer(info.name, checkpoint->tensor(info.name));
  }
}

// What names of slices may be, for the error: with a forward pass or without.
std::string expected_names(bool traced) {
  return traced ? "a name that --trace or --keys lists"
                : "a parameter of the model, or --trace IMAGE or --trace random for a value of the forward pass";
}

}  // namespace

std::vector<nn::NamedTensor> InspectedModel::gradients(const std::string& /*of_class*/) const {
  throw Error(source(), "an image classifier, for --gradient", "a model without class logits");
}

void InspectedModel::print_table(const TableOptions& /*options*/, bool /*quiet*/) const {
  throw Error(source(), "a Vision Transformer, for --table", "a model of another family");
}

void print_values(const ValueOptions& options, const InspectedModel& inspected) {
  std::vector<nn::NamedTensor> gradients;
  if (!options.gradient.empty()) gradients = inspected.gradients(options.gradient);
  std::optional<NpzArrays> file;
  if (!options.output.empty()) file.emplace(options.output);
  ValueListing listing(options.slices, inspected.key_map(), file ? &*file : nullptr);
  if (!options.gradient.empty()) {
    for (const nn::NamedTensor& gradient : gradients) listing.add(gradient.name, gradient.tensor);
    listing.finish(expected_names(true));
    if (file) file->commit();
    return;
  }
  const std::shared_ptr<const nn::Module> model = inspected.build(Device::cpu);
  offer_weights(*model, inspected.checkpoint(), listing);
  const bool forward = !options.trace.empty() && (listing.prints_rows() || !listing.complete() || file);
  if (forward) {
    const nn::TraceScope scope([&](const std::string& name, const Tensor& tensor) { listing.add(name, tensor); });
    inspected.trace(*model, listing);
  }
  listing.finish(expected_names(forward));
  if (file) file->commit();
}

}  // namespace vitrail::app

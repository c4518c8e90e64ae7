// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/inspect/layer_run.h"

#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/value_listing.h"
#include "vitrail/nn/trace.h"

namespace vitrail::app {

Tensor LayerRun::input(const std::string& name, const Shape& shape) {
  settings_.check(options_.name);
  inputs_.emplace_back(name, Tensor::randn(shape, inputs_.size() + 1));
  return inputs_.back().second;
}

void LayerRun::show(const nn::Module& layer, const std::function<Values()>& forward) {
  settings_.check(options_.name);
  if (options_.slices.empty()) print_output("{}\n{}\n\n", settings_.summary(), layer.to_string());
  ValueListing listing(options_.slices);
  for (const nn::NamedTensor& p : layer.named_parameters()) listing.offer(layer.path() + "." + p.name, p.tensor);
  for (const auto& [name, tensor] : inputs_) listing.add(name, tensor);
  Values returned;
  {
    const nn::TraceScope scope([&](const std::string& name, const Tensor& tensor) { listing.add(name, tensor); });
    returned = forward();
  }
  for (const auto& [name, tensor] : returned) {
    if (tensor.defined()) listing.add(name, tensor);
  }
  listing.finish("a name that the layer lists without --slice, or one of its parameters");
}

}  // namespace vitrail::app

// SPDX-License-Identifier: Apache-2.0
#pragma once
// One run of `inspect layer:NAME`: its settings, inputs and parameters, and where its values go.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "apps/vitrail/inspect/inspect_layer.h"
#include "apps/vitrail/inspect/layer_settings.h"
#include "vitrail/nn/module.h"

namespace vitrail::app {

class LayerRun {
 public:
  explicit LayerRun(LayerOptions options) : options_(std::move(options)), settings_(options_.settings) {}

  LayerSettings& settings() { return settings_; }
  int64_t batch() const { return options_.batch; }
  ParamSource params() { return ParamSource(random_, options_.name); }
  // Random values of N(0, 1), listed as `name`.
  Tensor input(const std::string& name, const Shape& shape);

  using Values = std::vector<std::pair<std::string, Tensor>>;
  // Prints the settings, the layer as PyTorch prints it, and the values of forward(): those that the layer traces, then
  // those that it returns.
  void show(const nn::Module& layer, const std::function<Values()>& forward);

 private:
  LayerOptions options_;
  LayerSettings settings_;
  RandomParams random_{0};
  Values inputs_;
};

}  // namespace vitrail::app

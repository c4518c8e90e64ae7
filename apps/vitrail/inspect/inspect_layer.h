// SPDX-License-Identifier: Apache-2.0
#pragma once
// inspect layer:NAME: one layer with random parameters and inputs, every step of it with shape and values.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::app {

constexpr std::string_view kLayerPrefix = "layer:";

struct LayerOptions {
  std::string name;  // empty: lists the layers and their settings
  std::vector<std::string> settings, slices;
  int64_t batch = 1;
};

void print_layer(const LayerOptions& options);

}  // namespace vitrail::app

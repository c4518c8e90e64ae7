// SPDX-License-Identifier: Apache-2.0
#pragma once
// The figure of `vitrail attention`: the photograph beside its attention maps, with a colour scale and a caption.
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/image/transform.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::pipeline {

struct AttentionMap {
  std::string label;  // "layer 3 head 1"
  Tensor map;         // [grid height, grid width]
};

struct AttentionFigure {
  const image::Image& photo;
  image::Region region;  // what the maps cover of it
  std::vector<AttentionMap> maps = {};
  int64_t columns = 0;                               // columns of a grid; 0: nearly a square
  std::optional<std::array<int64_t, 2>> query = {};  // row and column of the patch that is outlined
  std::vector<std::string> caption = {};             // lines
};

// One map has the photograph's size.  Several are a grid of tiles, each with its label and its own scale.
image::Image draw(const AttentionFigure& figure);

}  // namespace vitrail::pipeline

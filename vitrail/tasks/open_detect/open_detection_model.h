// SPDX-License-Identifier: Apache-2.0
#pragma once
// Models that find what a request names, by texts or by an object in another image.
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/tasks/loaded_model.h"

namespace vitrail::tasks {

class OpenDetectionModel : public LoadedModel {
 public:
  // Queries [labels, D]: the embedding of each label, as DualModel::embed_labels().
  virtual Tensor embed_labels(const std::vector<std::string>& labels, const std::vector<std::string>& templates,
                              const ProgressCallback& progress = {}) const = 0;
  // The query [1, D] for an object of an example that encode() has seen: in a box (left, top, right, bottom in pixels),
  // or else the object that the image shows.
  virtual Tensor embed_example(const ImageEncoding& example,
                               const std::optional<std::array<float, 4>>& box = {}) const = 0;

  struct Scores {
    Tensor scores;  // scores of queries for each box, from 0 to 1, [boxes, queries]
    Tensor boxes;   // left, top, right, bottom in pixels of the image, [boxes, 4]
  };
  virtual Scores scores(const ImageEncoding& encoding, const Tensor& queries) const = 0;

  image::ColorMode color_mode() const override { return image::ColorMode::rgb; }
};

}  // namespace vitrail::tasks

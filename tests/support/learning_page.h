// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads a learning page as the browser does: the manifest, and arrays from blobs of base64 and gzip.
#include <nlohmann/json.hpp>
#include <string>

#include "vitrail/explain/explain.h"

namespace vitrail::testing {

image::Image smooth_image(int64_t width, int64_t height, int64_t channels);

struct ReadPage {
  void read(explain::LearningPage of);

  // The content of the element <script id="…">.
  std::string element(const std::string& id) const;
  // The values of an array, in f32.
  Tensor array(const std::string& name) const;

  explain::LearningPage page;
  nlohmann::ordered_json manifest;
};

// A page of a model, of an image with smooth colours.
struct PageOfModel : ReadPage {
  explicit PageOfModel(const std::filesystem::path& folder, const explain::ExplainOptions& options = {},
                       const std::string& image_name = "photo.png", int64_t width = 40, int64_t height = 30);

  models::OpenedModel opened;
  Model model;
  image::Image photo;
};

}  // namespace vitrail::testing

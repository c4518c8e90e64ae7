// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads a learning page as the browser does: the manifest, and arrays from blobs of base64 and gzip.
#include <nlohmann/json.hpp>
#include <string>

#include "vitrail/explain/explain.h"

namespace vitrail::testing {

// A page of a model, of an image with smooth colours.
struct PageOfModel {
  explicit PageOfModel(const std::filesystem::path& folder, const explain::ExplainOptions& options = {},
                       const std::string& image_name = "photo.png", int64_t width = 40, int64_t height = 30);

  // The content of the element <script id="…">.
  std::string element(const std::string& id) const;
  // The values of an array, in f32.
  Tensor array(const std::string& name) const;

  models::OpenedModel opened;
  Model model;
  image::Image photo;
  explain::LearningPage page;
  nlohmann::ordered_json manifest;
};

}  // namespace vitrail::testing

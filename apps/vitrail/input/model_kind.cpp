// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/input/model_kind.h"

#include <filesystem>

#include "vitrail/base/error.h"
#include "vitrail/models/sam/architectures.h"

namespace vitrail::app {

namespace {

// The architecture of this name, unless a file has it.
const models::SamArchitecture* architecture_of(const std::string& name_or_path) {
  std::error_code unreadable;
  return std::filesystem::exists(name_or_path, unreadable) ? nullptr : models::find_sam_architecture(name_or_path);
}

}  // namespace

bool is_segmentation_model(const std::string& path) {
  try {
    return models::is_segment_anything(path);
  } catch (const Error&) {
    return false;
  }
}

bool names_segmentation(const std::string& name_or_path) {
  return architecture_of(name_or_path) || is_segmentation_model(name_or_path);
}

models::Sam segmentation_model(const std::string& name_or_path, Device device) {
  const models::SamArchitecture* const named = architecture_of(name_or_path);
  if (!named) return models::load_sam(name_or_path);
  RandomParams random(0, DType::f32, device);
  return {named->config, ParamSource(random)};
}

}  // namespace vitrail::app

// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/convert/convert_dual.h"

#include <algorithm>

#include "vitrail/pipeline/dual_folder.h"
#include "vitrail/weights/hub_layout.h"

namespace vitrail::app {

std::string why_image_tower_alone(const models::OpenedModel& opened, const ModelOptions& options, bool int8) {
  if (int8) return "--dtype int8";
  if (!options.config.empty()) return "--config";
  if (!options.key_map.empty()) return "--key-map";
  if (!options.adapter.empty()) return "--adapter";
  if (options.image_size) return "--image-size";
  const bool preprocessing = !options.preset.empty() || !options.mean.empty() || !options.std.empty() ||
                             !options.interpolation.empty() || options.crop_pct || !options.crop_mode.empty();
  if (preprocessing) return "the options of preprocessing";
  const bool builtin = std::ranges::count(weights::KeyMap::builtin_names(), opened.config.key_map) > 0;
  return opened.config.key_map.empty() || builtin ? "" : "the key map in config.json";
}

void write_dual_folder(const models::OpenedModel& opened, const NamedTensors& tensors,
                       const std::filesystem::path& folder) {
  check_no_other_dual_processor(opened, folder);
  weights::write_hub_folder(folder, dual_config_json(opened), tensors);
  copy_dual_processor(opened, folder);
  copy_tokenizer(opened.folder, folder);
}

}  // namespace vitrail::app

// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/convert/convert_dual.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/text/tokenizer_files_internal.h"
#include "vitrail/weights/hub_layout.h"

namespace vitrail::app {
namespace {

namespace fs = std::filesystem;

// The configuration that models::open_model() reads beside the weights.
fs::path source_config(const models::OpenedModel& opened) {
  const fs::path own = opened.folder / "config.json", open_clip = opened.folder / "open_clip_config.json";
  const bool of_open_clip = fs::path(opened.checkpoint->path()).filename().string().starts_with("open_clip_");
  return is_present(open_clip) && (of_open_clip || !is_present(own)) ? open_clip : own;
}

void copy_if_present(const fs::path& file, const fs::path& folder) {
  std::error_code error;
  if (!is_present(file) || fs::equivalent(file, folder / file.filename(), error)) return;
  error.clear();
  fs::copy_file(file, folder / file.filename(), fs::copy_options::overwrite_existing, error);
  if (error) throw Error((folder / file.filename()).string(), "a copy of " + file.string(), error.message());
}

}  // namespace

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

void write_dual_folder(const models::OpenedModel& opened, const NamedTensors& tensors, const fs::path& folder) {
  std::vector<std::string> processors;
  for (const char* name : {"processor_config.json", "preprocessor_config.json"}) {
    if (is_present(opened.folder / name)) processors.emplace_back(name);
  }
  weights::check_no_other_processor(folder, processors);
  const fs::path preprocessor = opened.folder / "preprocessor_config.json";
  weights::write_hub_folder(folder, read_text_file(source_config(opened)), tensors,
                            is_present(preprocessor) ? read_text_file(preprocessor) : "");
  copy_if_present(opened.folder / "processor_config.json", folder);
  copy_tokenizer(opened.folder, folder);
}

void copy_tokenizer(const fs::path& from, const fs::path& to) {
  for (const char* name : text::kTokenizerFiles) copy_if_present(from / name, to);
  for (const char* name : text::kTokenizerCompanions) copy_if_present(from / name, to);
}

}  // namespace vitrail::app

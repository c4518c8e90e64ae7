// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/dual_folder.h"

#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/text/tokenizer_files_internal.h"
#include "vitrail/weights/hub_layout.h"

namespace vitrail {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProcessors[]{"processor_config.json", "preprocessor_config.json"};

void copy_if_present(const fs::path& file, const fs::path& folder) {
  std::error_code error;
  if (!is_present(file) || fs::equivalent(file, folder / file.filename(), error)) return;
  error.clear();
  fs::copy_file(file, folder / file.filename(), fs::copy_options::overwrite_existing, error);
  if (error) throw Error((folder / file.filename()).string(), "a copy of " + file.string(), error.message());
}

}  // namespace

// The file that models::open_model() reads beside the weights.
std::string dual_config_json(const models::OpenedModel& opened) {
  const fs::path own = opened.folder / "config.json", open_clip = opened.folder / "open_clip_config.json";
  const bool of_open_clip = fs::path(opened.checkpoint->path()).filename().string().starts_with("open_clip_");
  return read_text_file(is_present(open_clip) && (of_open_clip || !is_present(own)) ? open_clip : own);
}

void check_no_other_dual_processor(const models::OpenedModel& opened, const fs::path& folder) {
  std::vector<std::string> processors;
  for (const char* name : kProcessors) {
    if (is_present(opened.folder / name)) processors.emplace_back(name);
  }
  weights::check_no_other_processor(folder, processors);
}

void copy_dual_processor(const models::OpenedModel& opened, const fs::path& folder) {
  for (const char* name : kProcessors) copy_if_present(opened.folder / name, folder);
}

void copy_tokenizer(const fs::path& from, const fs::path& to) {
  for (const char* name : text::kTokenizerFiles) copy_if_present(from / name, to);
  for (const char* name : text::kTokenizerCompanions) copy_if_present(from / name, to);
}

}  // namespace vitrail

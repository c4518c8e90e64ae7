// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/served_model_internal.h"

#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/base/file_content_internal.h"
#include "vitrail/base/read_file.h"

namespace vitrail::serve {
namespace {

uint64_t next_number() {
  static std::atomic<uint64_t> numbers{0};
  return ++numbers;
}

// The string "note" of a config.json.  The family that reads the file says what is wrong with it.
std::string note_of(const models::ModelFiles& files) {
  std::error_code unreadable;
  if (!std::filesystem::exists(files.config, unreadable)) return {};
  const auto config = nlohmann::json::parse(read_regular_text_file(files.config), nullptr, false);
  if (!config.is_object() || !config.contains("note") || !config["note"].is_string()) return {};
  return config["note"].get<std::string>();
}

}  // namespace

ServedModel::ServedModel(const ModelSource& source, const ModelOptions& options)
    : name_(source.name), number_(next_number()) {
  const MappedFileGroup::Scope opening(files_);
  const models::ModelFiles files(source.path);
  loaded_ = tasks::open_model(files, {.model = options, .images_alone = name_});
  note_ = note_of(files);
  loaded_->warm_up();
  remember_contents();
}

bool ServedModel::has_changed_files() const {
  try {
    check_files();
    return false;
  } catch (const Error&) {
    return true;
  }
}

}  // namespace vitrail::serve
